import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { FORWARDED_NAMES } from "../../src/upstream/headers/header-names.ts";
import { forwardedHeaders } from "../../src/upstream/headers/outgoing-headers.ts";
import { pairsOf, valuesIn } from "../support/pairs.ts";
import { requestWith } from "../support/permit.ts";

const NAMES = [...FORWARDED_NAMES];

const authority = fc.constantFrom(
  "a.test",
  "b.test",
  "a.test:8443",
  "[2001:db8::1]",
  "[::1]:9",
  "",
);
const peer = fc.constantFrom("192.0.2.1", "10.0.0.1", "2001:db8::7");
/** Headers from a client or another proxy, in any case and number. */
const said = fc.array(
  fc.tuple(
    fc.constantFrom(...NAMES, ...NAMES.map((name) => name.toUpperCase()), "X-Other"),
    fc.constantFrom("", "192.0.2.66", "192.0.2.66, 10.0.0.2", "http", "evil.test", "for=evil"),
  ),
  { maxLength: 8 },
);

describe("from an untrusted peer", () => {
  test("headers from the client change nothing, and each name appears once", () => {
    fc.assert(
      fc.property(authority, peer, fc.boolean(), said, (authority, peer, secure, lies) => {
        const honest = { authority, peer, client: peer, secure };
        const got = forwardedHeaders(requestWith({ ...honest, rawHeaders: lies.flat() }));
        expect(got).toEqual(forwardedHeaders(requestWith(honest)));
        // A request without a host has none to report.
        const known = NAMES.filter((name) => authority !== "" || name !== "x-forwarded-host");
        expect(
          pairsOf(got)
            .map(([name]) => name.toLowerCase())
            .toSorted(),
        ).toEqual(known.toSorted());
      }),
    );
  });

  test("the values cached for a connection are never used for another host or peer", () => {
    // One connection has one peer, and is secure or is not.
    const connections = [true, false].map((secure, i) => ({
      peer: `192.0.2.${i}`,
      peerTrusted: false,
      secure,
      clientCertificate: undefined,
    }));
    const request = fc.record({ authority, connection: fc.constantFrom(...connections) });
    fc.assert(
      fc.property(fc.array(request, { maxLength: 12 }), (requests) => {
        for (const { authority, connection } of requests) {
          const copy = { ...connection };
          const afresh = forwardedHeaders(requestWith({ authority, connection: copy }));
          expect(forwardedHeaders(requestWith({ authority, connection }))).toEqual(afresh);
        }
      }),
    );
  });
});

describe("from a trusted proxy", () => {
  test("lists pass unchanged, with our observation appended", () => {
    fc.assert(
      fc.property(authority, peer, said, (authority, peer, fields) => {
        const rawHeaders = fields.flat();
        const request = requestWith({ authority, peer, peerTrusted: true, rawHeaders });
        const got = [...forwardedHeaders(request)];
        for (const [name, ours] of [
          ["x-forwarded-for", peer],
          ["forwarded", `${authority === "" ? "" : `host="${authority}";`}proto=https`],
        ] as const) {
          const before = valuesIn(rawHeaders, name).filter((value) => value !== "");
          const [list = "", another] = valuesIn(got, name);
          expect(another).toBeUndefined();
          expect(list.endsWith(ours)).toBe(true);
          expect(list.startsWith(before.join(", "))).toBe(true);
        }
        expect(valuesIn(got, "x-real-ip")).toEqual([request.client]);
      }),
    );
  });
});
