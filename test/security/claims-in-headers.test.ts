/**
 * Claims that do not fit into a header. A subject or group may be any Unicode text, a header may not: a claim with CR
 * and LF adds headers towards the backend, one with a comma becomes two groups, one beyond ASCII makes the proxy
 * throw or arrives as other characters (Latin-1 instead of UTF-8: `Ł` as `A`, U+010D as CR), and someone who can
 * choose a name chooses that of another user. Every claim arrives as one field of printable ASCII, and two different
 * claims arrive differently.
 */
import { describe, expect, it } from "vitest";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const pair = signingPair("claims");
const ISSUER = "https://id.example";

const SUBJECTS = [
  ...["alice", "Alice", "alice ", " alice", "alice\t", "alice%20", "alice%2520", "al ice"],
  ...[
    "ålice",
    "a\u030alice",
    "\u0430lice",
    "Łukasz",
    "Aukasz",
    "李",
    "😀",
    "alice\u010d\u010aX-A: b",
  ],
  ...[
    "alice\r\nX-Auth-Groups: admin",
    "alice\nX-Auth-Groups: admin",
    "alice\r",
    "alice\n",
    "alice\0",
  ],
  ...["alice\u0085", "alice\u2028", "alice\u00a0", "alice\x7f", "\u202ealice", "alice\u200b"],
  ...["alice,bob", "alice;bob", '"alice"', "%", "%0d%0aX: y", "constructor", "__proto__"],
];
const GROUPS: readonly (readonly string[])[] = [
  ["sales", "admin"],
  ["sales,admin"],
  ["sales%2Cadmin"],
  ["sales%252Cadmin"],
  [" sales", "admin "],
  ["sälés", "sal\u00e9s"],
  ["sales\r\nX-Auth-Subject: root"],
  ["sales\nadmin"],
  ["sales\0admin"],
  ["sales", "", "admin"],
  [],
];

const UPGRADE = [
  ...["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"],
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

function token(sub: string, groups: readonly string[] = []): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  return signToken(pair, { iss: ISSUER, aud: "orders", sub, groups, iat: now, exp: now + 600 });
}

describe.each([
  { kind: "request", more: [] },
  { kind: "upgrade", more: UPGRADE },
])("Sallyport with $kind", ({ more }) => {
  const standing = useSallyport(undefined, {
    withoutToken: true,
    files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }) },
    config: {
      tokens: {
        trusted: [
          {
            issuer: ISSUER,
            audience: "orders",
            jwks: { file: "jwks.json" },
            algorithms: ["ES256"],
          },
        ],
      },
    },
  });

  /** The identity that the backend got; undefined if it got none. */
  async function told(sub: string, groups: readonly string[] = []) {
    const { gate, backend } = standing();
    backend.forget();
    const authorization = `Authorization: Bearer ${await token(sub, groups)}`;
    const lines = ["GET /orders HTTP/1.1", "Host: localhost", authorization, ...more];
    const { last } = await exchange(gate, request(lines));
    const [seen, ...further] = backend.requests();
    expect(further).toEqual([]);
    if (seen === undefined) {
      expect(last.status).toBe(401);
      return undefined;
    }
    const identity = seen.headers.filter(([name]) => /^x-auth-/i.test(name));
    expect(identity.map(([name]) => name.toLowerCase()).toSorted()).toEqual([
      ...["x-auth-groups", "x-auth-issuer", "x-auth-subject"],
    ]);
    expect(identity.filter(([, value]) => !/^[ -~]*$/.test(value))).toEqual([]);
    expect(valuesOf(seen.headers, "x-a")).toEqual([]);
    return {
      subject: valuesOf(seen.headers, "x-auth-subject").join("|"),
      groups: valuesOf(seen.headers, "x-auth-groups").join("|"),
    };
  }

  it("sends every subject in ASCII, and different ones differently", async () => {
    const seen = new Map<string, string>();
    for (const subject of SUBJECTS) {
      const identity = await told(subject);
      if (identity === undefined) continue;
      expect([subject, seen.get(identity.subject)]).toEqual([subject, undefined]);
      seen.set(identity.subject, subject);
      expect(decodeURIComponent(identity.subject)).toBe(subject);
    }
    expect(seen.size).toBeGreaterThan(SUBJECTS.length / 2);
  });

  it("sends every list of groups in ASCII, and different ones differently", async () => {
    const seen = new Map<string, readonly string[]>();
    for (const groups of GROUPS) {
      const identity = await told("alice", groups);
      if (identity === undefined) continue;
      expect([groups, seen.get(identity.groups)]).toEqual([groups, undefined]);
      seen.set(identity.groups, groups);
    }
    expect(seen.size).toBeGreaterThan(GROUPS.length / 2);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("passes on bytes beyond ASCII in the identity that it received", async () => {
    const { gate, backend } = standing();
    const lines = ["GET /public/x HTTP/1.1", "Host: localhost", "X_Auth_Subject: \xc5lice"];
    await exchange(gate, request(lines));
    const headers = backend.requests()[0]?.headers ?? [];
    expect(headers.filter(([, value]) => /[^ -~]/.test(value))).toHaveLength(1);
  });
});
