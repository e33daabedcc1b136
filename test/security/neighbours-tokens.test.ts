/**
 * Advisories of 2025 and 2026 about tokens, in libraries and in the proxies that use them: the class numbers are those
 * of the table in SECURITY.md.
 *
 * - 2 to 4: a key without content, without `alg`, or a header that is not signed lets the token choose how it is
 *   verified (fast-jwt, PyJWT, Hono, libjwt, web-token).
 * - 8: one place of a token accepts `none` because it has a verifier of its own (HAProxy).
 * - 19, 41, 45: a claim is expanded a second time, or ends the header that it is put in, also towards HTTP/2 (Caddy,
 *   nginx, http-proxy-middleware).
 */
import { generateKeyPairSync } from "node:crypto";
import { afterAll, beforeEach, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { byKey, bySecret, compact, unsigned } from "../support/compact-token.ts";
import { startHttp2Backend } from "../support/http2-backend.ts";
import { valuesOf } from "../support/http-reader.ts";
import { claims, header, OWN, useTokenGate } from "../support/token-gate.ts";
import { acceptingUpgrades, waysInto } from "../support/ways.ts";

const own = byKey(OWN.privateKey);
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const rsaJwk = { ...rsa.publicKey.export({ format: "jwk" }), kid: "rsa" };
const EMPTY_KEYS = [
  { kty: "oct", k: "", kid: "empty" },
  { kty: "oct", kid: "empty" },
  { kty: "RSA", n: "", e: "AQAB", kid: "empty" },
  { kty: "RSA", n: "AQAB", e: "", kid: "empty" },
  { kty: "EC", crv: "P-256", x: "", y: "", kid: "empty" },
  { kty: "OKP", crv: "Ed25519", x: "", kid: "empty" },
  { kid: "empty" },
  null,
];

const RSA_ISSUER = "https://rsa.example";
const http2 = await startHttp2Backend();
afterAll(() => http2.close());

const route = (name: string, more: object) => ({
  name,
  path: `/${name}`,
  upstream: "app",
  ...more,
});
const PLACES = [
  ...[{ header: "Authorization" }, { header: "X-Token" }, { cookie: "session" }],
  ...[{ query: "t" }, { websocketProtocol: true }],
];
const requestHeaders = { set: { "X-Tenant": "t-${claim:tenant}", "X-Subject": "${subject}" } };

const standing = useTokenGate({
  files: { "rsa.json": JSON.stringify({ keys: [rsaJwk, ...EMPTY_KEYS] }) },
  config: {
    server: { http2: true, tls: "off" },
    tokens: {
      revocation: { logout: true },
      trusted: [
        {
          issuer: RSA_ISSUER,
          audience: "orders",
          jwks: { file: "rsa.json" },
          algorithms: ["RS256", "PS256"],
        },
      ],
    },
    upstreams: { h2: { targets: [http2.url], protocol: "h2c" } },
    routes: [
      route("places", { tokenFrom: PLACES }),
      route("set", { requestHeaders }),
      route("h2", { upstream: "h2", requestHeaders }),
      route("rest", { path: "/" }),
    ],
  },
});
beforeEach(() => standing().backend.answerWith(acceptingUpgrades));

const WAYS = Object.entries(waysInto(() => standing().gate));
const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
const statusOf = async (token: string, path = "/x"): Promise<number> =>
  (await ask(standing().gate, path, { token })).status;
const ours = (more: Readonly<Record<string, unknown>> = {}): string =>
  compact(header(), claims(more), own);

describe("2, 3: a key that the token may choose how to use", () => {
  it.each(EMPTY_KEYS)("%j verifies nothing", async () => {
    const payload = claims({ iss: RSA_ISSUER, aud: "orders" });
    for (const alg of ["none", "HS256", "RS256", "ES256", "EdDSA"]) {
      for (const kid of ["empty", undefined]) {
        for (const signer of [unsigned, bySecret(256, ""), () => Buffer.alloc(256)]) {
          expect(await statusOf(compact({ alg, kid }, payload, signer))).toBe(401);
        }
      }
    }
  });

  it("an RSA key without alg verifies RSA signatures, and is no HMAC secret", async () => {
    const payload = claims({ iss: RSA_ISSUER, aud: "orders" });
    const held = [
      rsaJwk.n ?? "",
      JSON.stringify(rsaJwk),
      "",
      Buffer.from(rsaJwk.n ?? "", "base64url"),
    ];
    const pems = (["spki", "pkcs1"] as const).flatMap((type) =>
      (["pem", "der"] as const).map((format) => rsa.publicKey.export({ format, type } as never)),
    );
    for (const secret of [...held, ...pems] as (string | Buffer)[]) {
      for (const bits of [256, 384, 512]) {
        const token = compact({ alg: `HS${bits}`, kid: "rsa" }, payload, bySecret(bits, secret));
        expect(await statusOf(token)).toBe(401);
      }
    }
  });
});

describe("4: a header that is not signed", () => {
  it("chooses nothing: neither form of the JSON serialization is a token", async () => {
    const [head = "", payload = "", signature = ""] = ours().split(".");
    const none = Buffer.from('{"alg":"none"}').toString("base64url");
    const parts = { payload, signature, header: { alg: "none" } };
    for (const json of [
      ...[{ ...parts, protected: head }, { ...parts, protected: none, signature: "" }, parts],
      {
        payload,
        signatures: [
          { protected: none, signature: "" },
          { protected: head, signature },
        ],
      },
    ]) {
      expect(await statusOf(JSON.stringify(json))).toBe(401);
      const encoded = Buffer.from(JSON.stringify(json)).toString("base64url");
      expect(await statusOf(`${encoded}.${payload}.${signature}`)).toBe(401);
    }
  });
});

describe("8: alg none", () => {
  const none = (alg = "none"): string => compact({ alg }, claims(), unsigned);

  it.each(WAYS)("is a token in no place, over %s", async (_way, send) => {
    for (const token of [none(), none("None"), none().slice(0, -1)]) {
      for (const [path, fields] of [
        ["/places", bearer(token)],
        ["/places", { "X-Token": token }],
        ["/places", { Cookie: `session=${token}`, Origin: "http://localhost" }],
        [`/places?t=${token}`, {}],
        ["/x", bearer(token)],
      ] as const) {
        expect(await send({ path, fields })).toBe(401);
      }
    }
  });

  it("is a token neither for a WebSocket protocol, nor for logout, nor for revocation", async () => {
    const { gate } = standing();
    const protocol = { "sec-websocket-protocol": `bearer, ${none()}` };
    expect((await ask(gate, "/places", { headers: protocol })).status).toBe(401);
    const post = { method: "POST", token: none() };
    expect((await ask(gate, "/api/logout", post)).status).toBe(401);
    const revoked = await ask({ port: gate.adminPort }, "/-/revoke", post);
    expect(revoked.status).toBe(400);
    expect(await statusOf(ours())).toBe(200);
  });
});

describe("19, 41, 45: a claim in a header", () => {
  const CLAIMS = {
    "${file:/etc/passwd}": "${file:/etc/passwd}",
    "${subject}": "${subject}",
    "${claim:sub}": "${claim:sub}",
    "${HOME}": "${HOME}",
    "acme\r\nX-Admin: 1": "acme%0D%0AX-Admin: 1",
    "acme\n:path: /admin": "acme%0A:path: /admin",
    "acme\0": "acme%00",
    "\u010d\u010aX-Admin: 1": "%C4%8D%C4%8AX-Admin: 1",
    "{}$&$1`": "{}$&$1`",
  };

  it.each(Object.entries(CLAIMS))(
    "%j is expanded once, and stays one value",
    async (claim, value) => {
      const token = ours({ tenant: claim, sub: "zoe" });
      for (const [, send] of WAYS) {
        standing().backend.forget();
        expect(await send({ path: "/set", fields: bearer(token) })).toBe(200);
        const [seen] = standing().backend.requests();
        expect(valuesOf(seen?.headers ?? [], "x-tenant")).toEqual([`t-${value}`]);
        expect(valuesOf(seen?.headers ?? [], "x-admin")).toEqual([]);
      }
      expect(await statusOf(token, "/h2")).toBe(200);
      const seen = http2.requests.at(-1)?.headers ?? {};
      expect([seen["x-tenant"], seen[":path"], seen["x-admin"]]).toEqual([
        `t-${value}`,
        "/h2",
        undefined,
      ]);
    },
  );

  it("as long as a token may be arrives whole, or the request is refused", async () => {
    const long = "x".repeat(5_000);
    expect(await statusOf(ours({ tenant: long }), "/set")).toBe(200);
    const [seen] = standing().backend.requests().slice(-1);
    expect(valuesOf(seen?.headers ?? [], "x-tenant")).toEqual([`t-${long}`]);
    expect(await statusOf(ours({ tenant: "x".repeat(65_536) }), "/set")).toBe(431);
  });
});
