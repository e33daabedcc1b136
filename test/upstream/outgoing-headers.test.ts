import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  IDENTITY_PRESETS,
  type IdentityHeaderNames,
} from "../../src/upstream/headers/identity-headers.ts";
import { createOutgoingHeaders } from "../../src/upstream/headers/outgoing-headers.ts";
import { permitFor, requestWith, routeWith } from "../support/permit.ts";
import { mintPermit } from "../../src/core/request/permit.ts";
import { pairsOf, valuesIn } from "../support/pairs.ts";

const NAMES: Readonly<Record<string, IdentityHeaderNames>> = {
  ...IDENTITY_PRESETS,
  "custom names": { subject: "X-User", groups: "X-Teams" },
  "names with underscores": { subject: "X_User", groups: "X_Teams" },
};
const HOP_BY_HOP = [
  ...["Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization"],
  ...["TE", "Trailer", "Transfer-Encoding", "Upgrade", "HTTP2-Settings", "Expect"],
];
const OURS = [
  ...["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Forwarded-Port"],
  ...["X-Real-IP", "Forwarded", "X-Request-Id"],
];
const HARMLESS = ["Accept", "X-Anything", "Cookie", "traceparent", "X-Auth", "X-Users", "Subject"];

function identityNames(names: IdentityHeaderNames): string[] {
  return [names, ...Object.values(IDENTITY_PRESETS)]
    .flatMap((row: IdentityHeaderNames) => [row.subject, row.groups, row.issuer])
    .filter((name) => name !== undefined);
}

/** Returns the name as read by a backend that ignores case, and treats `_` and `.` as `-`. */
function folded(name: string): string {
  return name.toLowerCase().replaceAll(/[_.]/g, "-");
}

/** Returns spellings that such a backend reads as this name. */
function spelling(name: string): fc.Arbitrary<string> {
  return fc.array(fc.nat(3), { minLength: name.length, maxLength: name.length }).map((turns) =>
    Array.from(name)
      .map((letter, i) => {
        if (/[-_]/.test(letter)) return ["-", "_", ".", letter][turns[i] ?? 3] ?? letter;
        return (turns[i] ?? 0) % 2 === 0 ? letter.toLowerCase() : letter.toUpperCase();
      })
      .join(""),
  );
}

describe.each(Object.entries(NAMES))("with %s", (_name, names) => {
  const outgoing = createOutgoingHeaders({ identityHeaders: names });
  const identity = identityNames(names);
  const any = fc.constantFrom(...identity, ...HOP_BY_HOP, ...OURS, ...HARMLESS).chain(spelling);
  const field = fc.oneof(
    fc.tuple(any, fc.constant("forged")),
    fc.tuple(
      fc.constant("Connection"),
      fc.array(any, { maxLength: 3 }).map((all) => all.join(", ")),
    ),
  );
  const fields = fc.array(field, { maxLength: 20 });
  const flat = fc.tuple(fields, fc.boolean(), fc.boolean());

  test("no identity comes from the client, and ours appears once", () => {
    fc.assert(
      fc.property(flat, ([sent, isPublic, peerTrusted]) => {
        const rawHeaders = sent.flat();
        const permit = isPublic
          ? mintPermit(
              requestWith({ rawHeaders, peerTrusted }),
              routeWith({ auth: "none" }),
              undefined,
            )
          : permitFor({ rawHeaders, peerTrusted });
        const got = pairsOf(outgoing.headers(permit));
        for (const name of new Set(identity.map(folded))) {
          const values = got.filter(([each]) => folded(each) === name).map(([, value]) => value);
          expect(values).not.toContain("forged");
          const mine = [names.subject, names.groups, names.issuer].some(
            (own) => own !== undefined && folded(own) === name,
          );
          expect(values).toHaveLength(mine && !isPublic ? 1 : 0);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("hop-by-hop fields and fields named in Connection are removed", () => {
    fc.assert(
      fc.property(fields, (sent) => {
        const got = pairsOf(outgoing.headers(permitFor({ rawHeaders: sent.flat() })));
        const present = new Set(got.map(([name]) => folded(name)));
        for (const name of HOP_BY_HOP) expect(present).not.toContain(folded(name));
        const named = sent
          .filter(([name]) => name.toLowerCase() === "connection")
          .flatMap(([, value]) => value.split(",").map((option) => option.trim().toLowerCase()));
        const forged = got.filter(([, value]) => value === "forged");
        expect(forged.filter(([name]) => named.includes(name.toLowerCase()))).toEqual([]);
      }),
      { numRuns: 500 },
    );
  });

  test("all other fields pass unchanged and in order", () => {
    const harmless = fc.array(
      fc.tuple(fc.constantFrom(...HARMLESS).chain(spelling), fc.string({ maxLength: 5 })),
    );
    fc.assert(
      fc.property(harmless, fields, (kept, dropped) => {
        const without = dropped.filter(
          ([name]) =>
            !HARMLESS.some((one) => folded(one) === folded(name)) && folded(name) !== "connection",
        );
        // Dropped fields between the ones that are kept.
        const mixed = kept.flatMap((field, i) => [...without.slice(i, i + 1), field]);
        const got = pairsOf(outgoing.headers(permitFor({ rawHeaders: mixed.flat() })));
        expect(got.slice(0, kept.length)).toEqual(kept);
      }),
      { numRuns: 300 },
    );
  });
});

describe("many Connection fields", () => {
  const outgoing = createOutgoingHeaders({ identityHeaders: IDENTITY_PRESETS.sallyport });
  const COUNT = 20_000;

  test.each([
    ["one option each", (i: number) => `x-${i}`],
    ["several options each", (i: number) => `x-${i}, close, x-${i}-a`],
  ])("take time proportional to their number: %s", (_name, options) => {
    const many = Array.from({ length: COUNT }, (_, i) => ["Connection", options(i)]).flat();
    const rawHeaders = ["X-1", "a", ...many, `X-${COUNT - 1}`, "b", "X-Kept", "c"];
    const before = process.cpuUsage();
    const got = outgoing.headers(permitFor({ rawHeaders }));
    const { user, system } = process.cpuUsage(before);
    // About 20 ms if linear; more than 10 s with a copy of the set per field.
    expect((user + system) / 1e6).toBeLessThan(2);
    expect(got.slice(0, 2)).toEqual(["X-Kept", "c"]);
  });
});

describe("Authorization", () => {
  const outgoing = createOutgoingHeaders({ identityHeaders: IDENTITY_PRESETS.sallyport });
  const rawHeaders = ["Authorization", "Bearer one", "authorization_", "x"];

  test("is removed unless the route keeps it", () => {
    const strip = outgoing.headers(permitFor({ rawHeaders }));
    expect(valuesIn(strip, "authorization")).toEqual([]);
    const keep = outgoing.headers(permitFor({ rawHeaders }, { forwardAuthorization: "keep" }));
    expect(valuesIn(keep, "authorization")).toEqual(["Bearer one"]);
  });

  test("is removed if Connection names it", () => {
    const named = ["Connection", "close, Authorization", ...rawHeaders];
    const keep = outgoing.headers(
      permitFor({ rawHeaders: named }, { forwardAuthorization: "keep" }),
    );
    expect(valuesIn(keep, "authorization")).toEqual([]);
  });
});

describe("the forwarding headers", () => {
  const outgoing = createOutgoingHeaders({ identityHeaders: IDENTITY_PRESETS.sallyport });
  const way = (parts: Parameters<typeof requestWith>[0]): Record<string, string[]> => {
    const got = outgoing.headers(permitFor(parts));
    return Object.fromEntries(OURS.map((name) => [name, valuesIn(got, name.toLowerCase())]));
  };

  test("are set from the connection, with IPv6 addresses in brackets and quotes (RFC 7239 §6)", () => {
    expect(way({ peer: "2001:db8::1", authority: "a.test:9000", secure: false })).toEqual({
      "X-Forwarded-For": ["2001:db8::1"],
      "X-Forwarded-Proto": ["http"],
      "X-Forwarded-Host": ["a.test:9000"],
      "X-Forwarded-Port": ["9000"],
      "X-Real-IP": ["2001:db8::1"],
      Forwarded: ['for="[2001:db8::1]";host="a.test:9000";proto=http'],
      "X-Request-Id": ["request-7"],
    });
  });

  test.each([
    [true, "a.test", "443"],
    [false, "a.test", "80"],
    [true, "[2001:db8::1]", "443"],
    [true, "[2001:db8::1]:9", "9"],
  ])("include the port (TLS %s, %s)", (secure, authority, port) => {
    expect(way({ secure, authority })["X-Forwarded-Port"]).toEqual([port]);
  });

  test("of a trusted proxy are continued, and joined if there are several", () => {
    const said = [
      ...["X-Forwarded-For", "192.0.2.9", "x-forwarded-for", "198.51.100.3, 203.0.113.7"],
      ...["Forwarded", "for=192.0.2.9", "X-Forwarded-Proto", "http", "X-Real-IP", "forged"],
    ];
    const request = {
      rawHeaders: said,
      peer: "10.0.0.1",
      client: "203.0.113.7",
      peerTrusted: true,
    };
    expect(way(request)).toMatchObject({
      "X-Forwarded-For": ["192.0.2.9, 198.51.100.3, 203.0.113.7, 10.0.0.1"],
      "X-Forwarded-Proto": ["http"],
      "X-Forwarded-Host": ["api.example.com"],
      "X-Real-IP": ["203.0.113.7"],
      Forwarded: ['for=192.0.2.9, for=10.0.0.1;host="api.example.com";proto=https'],
    });
  });
});

test("thousands of invented names change nothing", () => {
  const outgoing = createOutgoingHeaders({ identityHeaders: IDENTITY_PRESETS.sallyport });
  for (let i = 0; i < 3000; i += 1) {
    outgoing.headers(permitFor({ rawHeaders: [`X-Name-${i}`, "1"] }));
  }
  const got = outgoing.headers(
    permitFor({ rawHeaders: ["X-Late", "1", "x_AUTH.subject", "forged"] }),
  );
  expect(valuesIn(got, "x-late")).toEqual(["1"]);
  expect(got).not.toContain("forged");
});
