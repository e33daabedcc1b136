import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import fc from "fast-check";
import { expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import { GateRequest } from "../../src/core/request/gate-request.ts";
import { createNetworks } from "../../src/lib/http/networks.ts";
import { createIntake, type Intake, MAX_HEADER_FIELDS } from "../../src/server/request/intake.ts";
import { valuesIn } from "../support/pairs.ts";

interface Parts {
  readonly method: string;
  readonly url: string;
  readonly httpVersion: string;
  readonly fields: readonly (readonly [string, string])[];
}

const PIECES = [
  "/",
  "a",
  ".",
  "..",
  "%2e",
  "%2F",
  "%41",
  ";",
  "?",
  "#",
  "//",
  "\\",
  "@",
  "%25",
  "é",
];
const url = fc.oneof(
  { arbitrary: fc.constantFrom("/a", "/a/b?x=1&y", "/%41/", "/"), weight: 3 },
  fc.array(fc.constantFrom(...PIECES), { maxLength: 6 }).map((pieces) => `/${pieces.join("")}`),
  fc.constantFrom(
    "http://a.test/x",
    "http://A.TEST",
    "http://b.test/",
    "*",
    "",
    "a.test:80",
    "//x",
  ),
);
const field = fc.oneof(
  fc.tuple(
    fc.constantFrom("Host", "host"),
    fc.constantFrom(
      "a.test",
      "a.test",
      "A.test:80",
      "b.test.",
      "",
      "a, b",
      "a..b",
      "a:99999",
      "[::1]",
    ),
  ),
  fc.tuple(
    fc.constantFrom("Content-Length"),
    fc.constantFrom("0", "5", "+5", "", "1e1", "9".repeat(30)),
  ),
  fc.tuple(
    fc.constantFrom("Transfer-Encoding"),
    fc.constantFrom("chunked", "Chunked", "gzip, chunked"),
  ),
  fc.tuple(fc.constantFrom("Authorization", "AUTHORIZATION"), fc.constantFrom("Bearer x", "")),
  fc.tuple(fc.constantFrom("Expect"), fc.constantFrom("100-continue", "100-Continue", "else")),
  fc.tuple(fc.constantFrom("X-Request-Id", "__proto__", "X-Forwarded-For"), fc.string()),
);
const parts: fc.Arbitrary<Parts> = fc.record({
  method: fc.constantFrom("GET", "POST", "TRACE"),
  url,
  httpVersion: fc.constantFrom("1.1", "1.1", "1.1", "1.0", "0.9", "2.0"),
  // With a valid host first, more of them are accepted.
  fields: fc
    .tuple(fc.boolean(), fc.array(field, { maxLength: 3, size: "xsmall" }))
    .map(([hosted, others]) => (hosted ? [["Host", "a.test"] as const, ...others] : others)),
});

const intake = createIntake({
  trustedProxies: createNetworks([]),
  limits: { headers: MAX_HEADER_FIELDS },
});

/** Passes a message to intake. @returns the request, or the code and reason of its refusal. */
function read(taking: Intake, { method, url, httpVersion, fields }: Parts, socket = new Socket()) {
  const message = new IncomingMessage(socket);
  Object.assign(message, { method, url, httpVersion, rawHeaders: fields.flat() });
  try {
    return taking(message, 7);
  } catch (error) {
    if (error instanceof GateError) return `${error.code} ${error.reason}`;
    throw error;
  }
}

test("every message is refused with a known code, or has only one interpretation", () => {
  let taken = 0;
  fc.assert(
    fc.property(parts, (given) => {
      const request = read(intake, given);
      if (typeof request === "string") {
        expect(request).toMatch(
          /^(?:bad_request ambiguous_|method_not_allowed|expectation_failed)/,
        );
        return;
      }
      taken += 1;
      const raw = given.fields.flat();
      const hosts = valuesIn(raw, "host");
      expect(GateRequest.is(request)).toBe(true);
      expect(request.path).toMatch(/^(?:\/(?:[A-Za-z0-9\-._~!$&'()*+,=:@]|%[0-9A-F]{2})+)*\/?$/);
      expect(request.path).toMatch(/^\//);
      expect(request.path).not.toMatch(/\/\.{1,2}(?:\/|$)/);
      expect(request.query).toMatch(/^(?:\?[^#]*)?$/);
      expect(hosts).toEqual(request.authority === "" ? [] : [request.authority]);
      expect(request.authority === "" ? given.httpVersion : "1.0").toBe("1.0");
      expect(request.host).toMatch(/^(?:[a-z0-9_-]+(?:\.[a-z0-9_-]+)*|\[[0-9a-f:.]+\]|)$/);
      expect(request.authorizations).toBe(valuesIn(raw, "authorization").length);
      expect(request.requestId).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
      const codings = valuesIn(raw, "transfer-encoding");
      const lengths = valuesIn(raw, "content-length");
      expect(codings.length + lengths.length).toBeLessThanOrEqual(1);
      expect(request.bodyLength).toBe(codings.length > 0 ? -1 : Number(lengths[0] ?? 0));
    }),
    { numRuns: 2000 },
  );
  expect(taken).toBeGreaterThan(200);
});

test("data cached for a connection never changes how its next request is read", () => {
  fc.assert(
    fc.property(fc.array(parts, { maxLength: 6 }), (requests) => {
      const remembering = createIntake({
        trustedProxies: createNetworks([]),
        limits: { headers: MAX_HEADER_FIELDS },
      });
      const socket = new Socket();
      for (const given of requests) {
        const [kept, afresh] = [read(remembering, given, socket), read(intake, given)];
        expect(essence(kept)).toEqual(essence(afresh));
      }
    }),
    { numRuns: 500 },
  );
});

function essence(request: GateRequest | string) {
  if (typeof request === "string") return request;
  const { path, matchPath, query, authority, host, bodyLength, authorization } = request;
  const { client, expectsContinue, requestId } = request;
  const { peer, secure } = request.connection;
  return [
    ...[path, matchPath, query, authority, host, bodyLength, authorization],
    ...[peer, client, secure, expectsContinue, requestId],
  ];
}
