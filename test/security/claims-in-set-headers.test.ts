/**
 * Claims in headers that a route sets. Someone who can choose a claim tries to end the header and begin another one,
 * towards the backend or in the answer, or omits the claim so that their own header of that name passes.
 */
import { expect, it } from "vitest";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { valuesOf } from "../support/http-reader.ts";
import { useSallyport } from "../support/pair.ts";
import { exchange, request } from "../support/raw-client.ts";

const pair = signingPair("set-headers");
const ISSUER = "https://id.example";

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
    routes: [
      {
        name: "all",
        path: "/",
        upstream: "app",
        requestHeaders: { set: { "X-Tenant": "t-${claim:tenant}" } },
        responseHeaders: { set: { "X-Seen": "${claim:tenant}" } },
      },
    ],
  },
});

async function seenWith(claims: object, ...more: string[]) {
  const { gate, backend } = standing();
  backend.forget();
  const now = Math.floor(Date.now() / 1000);
  const own = { iss: ISSUER, aud: "orders", sub: "alice", iat: now, exp: now + 600 };
  const authorization = `Authorization: Bearer ${await signToken(pair, { ...own, ...claims })}`;
  const lines = ["GET /x HTTP/1.1", "Host: localhost", authorization, ...more];
  const { last } = await exchange(gate, request(lines));
  expect(last.status).toBe(200);
  const [seen, ...further] = backend.requests();
  expect(further).toEqual([]);
  expect(valuesOf(seen?.headers ?? [], "x-admin")).toEqual([]);
  expect(last.header("x-admin")).toBeUndefined();
  return { tenant: valuesOf(seen?.headers ?? [], "x-tenant"), told: last.header("x-seen") };
}

it.each([
  ["acme\r\nX-Admin: 1", "acme%0D%0AX-Admin: 1"],
  ["acme\nX-Admin: 1", "acme%0AX-Admin: 1"],
  ["acme\0", "acme%00"],
  ["Łódź", "%C5%81%C3%B3d%C5%BA"],
  ["\u010d\u010aX-Admin: 1", "%C4%8D%C4%8AX-Admin: 1"],
  ["${subject}", "${subject}"],
  [42, "42"],
  [["a", "b,c"], "a,b%2Cc"],
  ["a,b,c", "a%2Cb%2Cc"],
  ["a@b.c\u00e9", "a@b.c%C3%A9"],
  ["100%", "100%25"],
  ["%C3%A9", "%25C3%25A9"],
])("the claim %j arrives as one value", async (tenant, expected) => {
  expect(await seenWith({ tenant })).toEqual({ tenant: [`t-${expected}`], told: expected });
});

it.each([{}, { tenant: null }, { tenant: { a: 1 } }, { tenant: "a\ud800" }])(
  "with the claims %j, the client's own header does not arrive, either",
  async (claims) => {
    const forged = ["X-Tenant: t-other", "x_tenant: t-other", "X-Seen: 1"];
    expect(await seenWith(claims, ...forged)).toEqual({ tenant: [], told: undefined });
  },
);
