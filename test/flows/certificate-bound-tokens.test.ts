/** Tokens that are bound to the client certificate of the connection (RFC 8705 §3), and the questions of other proxies about bound tokens. */
import { X509Certificate } from "node:crypto";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask as askAdmin } from "../support/ask.ts";
import { clientAuthority } from "../support/client-certificates.ts";
import { editConfiguration } from "../support/edits.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { signingPair, signToken } from "../support/foreign-keys.ts";
import { clientKey, proofBy } from "../support/proofs.ts";
import { request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { tlsExchange } from "../support/tls-client.ts";

const ISSUER = "https://issuer.example.com";
const pair = signingPair("issuer");
const authority = await clientAuthority();
const alice = await authority.certificate();
const bob = await authority.certificate({ subject: [{ shortName: "CN", value: "bob" }] });
const selfMade = await (await clientAuthority()).certificate();
const key = await clientKey();

function thumbprintOf({ cert }: { readonly cert: string }): string {
  const hex = new X509Certificate(cert).fingerprint256.replaceAll(":", "");
  return Buffer.from(hex, "hex").toString("base64url");
}

const now = Math.floor(Date.now() / 1000);
const tokenWith = (cnf: object): Promise<string> =>
  signToken(pair, {
    iss: ISSUER,
    aud: "orders",
    sub: "alice",
    iat: now,
    exp: now + 600,
    cnf,
  });
const toAlice = await tokenWith({ "x5t#S256": thumbprintOf(alice) });
const toBoth = await tokenWith({ "x5t#S256": thumbprintOf(alice), jkt: key.jkt });
const toKey = await tokenWith({ jkt: key.jkt });
const toSelfMade = await tokenWith({ "x5t#S256": thumbprintOf(selfMade) });

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    files: { "jwks.json": JSON.stringify({ keys: [pair.jwk] }), "clients.crt": authority.cert },
    config: {
      server: { tls: { clientCertificates: { mode: "optional", caFile: "clients.crt" } } },
      decisions: { from: ["127.0.0.0/8"] },
      tokens: {
        trusted: [
          {
            issuer: ISSUER,
            audience: "orders",
            algorithms: ["ES256"],
            proof: "require",
            jwks: { file: "jwks.json" },
          },
        ],
      },
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** Sends a GET with these fields over a connection with this certificate. */
async function statusOf(fields: readonly string[], certificate = {}, path = "/x"): Promise<number> {
  const head = [`GET ${path} HTTP/1.1`, "Host: localhost", ...fields, "Connection: close"];
  const { raw } = await tlsExchange(gate, request(head), certificate);
  return Number(raw.slice(9, 12));
}

const bearer = (token: string): string[] => [`Authorization: Bearer ${token}`];
const dpop = (token: string, htu = "https://localhost/x"): string[] => [
  ...[`Authorization: DPoP ${token}`, `DPoP: ${proofBy(key, { htu, token })}`],
];

describe("a token that is bound to a certificate", () => {
  it("needs a connection with that certificate", async () => {
    expect(await statusOf(bearer(toAlice), alice)).toBe(200);
    expect(await statusOf(bearer(toAlice), bob)).toBe(401);
    expect(await statusOf(bearer(toAlice))).toBe(401);
  });

  it("is not bound to a key", async () => {
    expect(await statusOf(dpop(toAlice), alice)).toBe(401);
  });

  it("is refused with a certificate that is not verified", async () => {
    expect(await statusOf(bearer(toSelfMade), selfMade)).not.toBe(200);
  });

  it("needs the proof of a key as well, if it is bound to both", async () => {
    expect(await statusOf(dpop(toBoth), alice)).toBe(200);
    expect(await statusOf(dpop(toBoth), bob)).toBe(401);
    expect(await statusOf(dpop(toBoth))).toBe(401);
    expect(await statusOf(bearer(toBoth), alice)).toBe(401);
  });
});

describe("a question of another proxy", () => {
  const ask = (fields: readonly string[], certificate = {}): Promise<number> => {
    const asked = ["X-Original-Method: GET", "X-Original-URL: https://localhost/x?y=1"];
    const forwarded = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"];
    return statusOf([...asked, ...forwarded, ...fields], certificate, "/_sallyport/decide");
  };

  it("brings its own certificate, which is not that of the client", async () => {
    expect(await ask(bearer(toAlice), alice)).toBe(401);
  });

  it("is about the URL and the method of the request", async () => {
    expect(await ask(dpop(toKey))).toBe(200);
    expect(await ask(dpop(toKey, "https://localhost/_sallyport/decide"))).toBe(401);
    expect(await ask(dpop(toKey, "https://localhost/z"))).toBe(401);
  });

  it("uses a proof, too", async () => {
    const fields = dpop(toKey);
    expect([await ask(fields), await ask(fields), await statusOf(fields)]).toEqual([200, 401, 401]);
  });
});

it("the certificate of a trusted proxy is not that of its clients, whether or not it names them", async () => {
  await editConfiguration(gate, (config) => {
    config["server"] = { ...Object(config["server"]), trustedProxies: ["127.0.0.1"] };
  });
  expect((await askAdmin({ port: gate.adminPort }, "/-/reload", { method: "POST" })).status).toBe(
    200,
  );
  const forwarded = ["X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https"];
  expect(await statusOf([...bearer(toAlice), ...forwarded], alice)).toBe(401);
  expect(await statusOf(bearer(toAlice), alice)).toBe(401);
  expect(await statusOf([...dpop(toBoth), ...forwarded], alice)).toBe(401);
  expect(await statusOf([...dpop(toKey), ...forwarded], alice)).toBe(200);
});
