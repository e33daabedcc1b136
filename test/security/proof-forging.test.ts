/**
 * Forged proofs. A proof brings its own key, so everything that went wrong with `alg` and `jwk` in tokens can go wrong again: an algorithm
 * without a signature, the public key as a secret, a private key that somebody pasted, a key of half a megabyte, an RSA exponent that takes
 * seconds, a second header, a URL that two parsers read differently (RFC 9449 §4.3, §11).
 */
import { generateKeyPairSync } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { byKey, bySecret, unsigned } from "../support/compact-token.ts";
import { type EchoBackend, startEchoBackend } from "../support/echo-backend.ts";
import { signToken } from "../support/foreign-keys.ts";
import { boundToken, clientKey, proofBy, type ProofParts } from "../support/proofs.ts";
import { exchange, request } from "../support/raw-client.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";

const bound = await boundToken();
const { client: alice, token, issuer, pair, seconds } = bound;
const HOST = "api.example.com";
const URL_OF_IT = `https://${HOST}/a/b`;

let backend: EchoBackend;
let gate: Sallyport;
beforeAll(async () => {
  backend = await startEchoBackend();
  gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    files: bound.files,
    config: {
      server: { tls: "off", trustedProxies: ["127.0.0.1"] },
      routes: [
        { name: "api", hosts: [HOST, "*.api.example.com"], path: "/", upstream: "app" },
        { name: "others", path: "/", upstream: "app" },
      ],
      tokens: bound.tokens,
    },
  });
});
afterAll(async () => {
  await gate.close();
  await backend.close();
});

/** Sends proofs as they are, behind a proxy that ends TLS. */
const statusOf = (...proofs: readonly string[]): Promise<number> => statusWith(token, proofs);

async function statusWith(token: string, proofs: readonly string[], host = HOST): Promise<number> {
  const fields = proofs.map((proof) => `DPoP: ${proof}`);
  const lines = ["GET /a/b HTTP/1.1", `Host: ${host}`, "X-Forwarded-Proto: https"];
  const head = request([...lines, `Authorization: DPoP ${token}`, ...fields, "Connection: close"]);
  return (await exchange(gate, head)).last.status;
}

const proofWith = (parts: Partial<ProofParts> = {}): string =>
  proofBy(alice, { htu: URL_OF_IT, token, ...parts });

const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const privateJwk = alice.privateKey.export({ format: "jwk" });
const { x = "", y = "" } = privateJwk;
const { jwk } = alice;

it("a good one is accepted", async () => {
  expect(await statusOf(proofWith())).toBe(200);
  expect(await statusOf(proofWith({ header: { typ: "application/DPoP+JWT" } }))).toBe(200);
});

it("a stolen token does not count with the proof of another, whether or not their key is known", async () => {
  const mallory = await clientKey();
  const his = await signToken(pair, {
    iss: issuer,
    aud: "orders",
    sub: "mallory",
    iat: seconds,
    exp: seconds + 600,
    cnf: { jkt: mallory.jkt },
  });
  const byHim = (of: string): string[] => [proofBy(mallory, { htu: URL_OF_IT, token: of })];
  expect(await statusWith(token, byHim(token))).toBe(401);
  expect(await statusWith(his, byHim(his))).toBe(200);
  expect(await statusWith(token, byHim(token))).toBe(401);
});

describe("the header", () => {
  it.each<[string, Partial<ProofParts>]>([
    ["no signature", { header: { alg: "none" }, signer: unsigned }],
    ["none, with a signature", { header: { alg: "None" } }],
    ["HS256 with x", { header: { alg: "HS256" }, signer: bySecret(256, x) }],
    [
      "HS256 with the JWK",
      { header: { alg: "HS256" }, signer: bySecret(256, JSON.stringify(jwk)) },
    ],
    ["a secret", { header: { alg: "HS256", jwk: { kty: "oct", k: x } }, signer: bySecret(256, x) }],
    ["RS256 with an EC key", { header: { alg: "RS256" } }],
    ["ES384 with P-256", { header: { alg: "ES384" } }],
    ["a private key", { header: { jwk: privateJwk } }],
    ["a member k", { header: { jwk: { ...jwk, k: "" } } }],
    ["no key", { header: { jwk: undefined } }],
    ["a key as text", { header: { jwk: JSON.stringify(jwk) } }],
    ["a list of keys", { header: { jwk: [jwk] } }],
    ["a key with a half that is missing", { header: { jwk: { ...jwk, y: undefined } } }],
    ["a point that is not on the curve", { header: { jwk: { ...jwk, y: x } } }],
    ["another key", { header: { jwk: rsa.publicKey.export({ format: "jwk" }), alg: "RS256" } }],
    ["the type of a token", { header: { typ: "JWT" } }],
    ["no type", { header: { typ: undefined } }],
    ["crit", { header: { crit: ["b64"], b64: false } }],
    ["a kid", { header: { kid: "1" } }],
    ["a certificate", { header: { x5c: ["MIIB"] } }],
    ["an address of a key", { header: { jku: "https://attacker.example.com/jwks.json" } }],
    ["a huge key", { header: { jwk: { ...jwk, x: "A".repeat(200_000) } } }],
    ["a large member", { header: { jwk: { ...jwk, more: "A".repeat(4_000) } } }],
    ["a signature with r and s of 0", { signer: () => Buffer.alloc(64) }],
    [
      "a signature in DER",
      { signer: (input) => Buffer.concat([Buffer.of(0x30), byKey(alice.privateKey)(input)]) },
    ],
    [
      "the signature of another key",
      { signer: byKey(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey) },
    ],
  ])("with %s is refused", async (_what, parts) => {
    expect([401, 431]).toContain(await statusOf(proofWith(parts)));
    expect(await statusOf(proofWith())).toBe(200);
  });

  it("with duplicate members is refused", async () => {
    const [, payload = "", signature = ""] = proofWith().split(".");
    const members = `"jwk":${JSON.stringify(jwk)},"typ":"dpop+jwt"`;
    const header = Buffer.from(`{"alg":"none","alg":"ES256",${members}}`).toString("base64url");
    expect(await statusOf(`${header}.${payload}.${signature}`)).toBe(401);
    expect(x + y).not.toBe("");
  });
});

describe("the field", () => {
  it("must be there once", async () => {
    expect(await statusOf()).toBe(401);
    expect(await statusOf("")).toBe(401);
    expect(await statusOf(proofWith(), proofWith())).toBe(401);
    expect(await statusOf(proofWith(), "")).toBe(401);
    expect(await statusOf(`${proofWith()}, ${proofWith()}`)).toBe(401);
  });

  it.each([
    ["two parts", (proof: string) => proof.split(".").slice(0, 2).join(".")],
    ["four parts", (proof: string) => `${proof}.`],
    ["padding", (proof: string) => proof.replace(".", "=.")],
    ["blanks", (proof: string) => proof.replace(".", " .")],
    ["quotes", (proof: string) => `"${proof}"`],
    ["the scheme", (proof: string) => `DPoP ${proof}`],
    [
      "another letter in the payload",
      (proof: string) => proof.replace(/\.(.)/, (_all, one) => `.${one === "e" ? "f" : "e"}`),
    ],
  ])("with %s is refused", async (_what, change) => {
    expect(await statusOf(change(proofWith()))).toBe(401);
  });
});

describe("the URL", () => {
  it.each([
    `HTTPS://API.EXAMPLE.COM/a/b`,
    `https://${HOST}:443/a/b`,
    `https://${HOST}/a/%62`,
    `https://${HOST}/x/../a/./b`,
    `https://${HOST}/a/b?query`,
    `https://${HOST}/a/b#fragment`,
  ])("%s is that of the request", async (htu) => {
    expect(await statusOf(proofWith({ htu }))).toBe(200);
  });

  it.each([
    `http://${HOST}/a/b`,
    `wss://${HOST}/a/b`,
    `//${HOST}/a/b`,
    "/a/b",
    `https://${HOST}/a/b/`,
    `https://${HOST}/a//b`,
    `https://${HOST}/A/b`,
    `https://${HOST}/a%2Fb`,
    `https://${HOST}/a\\b`,
    `https://${HOST}/a;x/b`,
    `https://${HOST}:8443/a/b`,
    `https://${HOST}./a/b`,
    `https://${HOST}@attacker.example.com/a/b`,
    `https://attacker.example.com@${HOST}/a/b`,
    `https://user:password@${HOST}/a/b`,
    `https://attacker.example.com/a/b`,
    `https://attacker.example.com\\@${HOST}/a/b`,
    `https://attacker.example.com?@${HOST}/a/b`,
    ` https://${HOST}/a/b`,
    `https://${HOST}/a/b\n`,
    `https:///${HOST}/a/b`,
    `https:${HOST}/a/b`,
    `https://${HOST}\t/a/b`,
    `https://${HOST}/a/b%`.replace("b%", "%zz"),
    "",
  ])("%j is another one", async (htu) => {
    expect(await statusOf(proofWith({ htu }))).toBe(401);
  });

  it.each([
    ["attacker.example.com", 401],
    ["attacker.example.com:443", 401],
    ["api.example.com.attacker.example.com", 401],
    ["a.b.api.example.com", 401],
    ["api.example.com.:8443", 200],
    ["eu.api.example.com", 200],
  ])("of a server at %s, to which the client has sent both", async (host, status) => {
    const proof = proofWith({ htu: `https://${host}/a/b` });
    expect(await statusWith(token, [proof], host)).toBe(status);
  });

  it.each([["post"], ["get"], ["GET "], [""], [null], [["GET"]]])(
    "%j is another method",
    async (htm) => {
      expect(await statusOf(proofWith({ claims: { htm } }))).toBe(401);
    },
  );
});

describe("the claims", () => {
  it.each<[string, Readonly<Record<string, unknown>>]>([
    ["no ath", { ath: undefined }],
    ["the token as ath", { ath: token }],
    ["another ath", { ath: "A".repeat(43) }],
    ["no jti", { jti: undefined }],
    ["a jti that is a number", { jti: 1 }],
    ["a jti of 257 bytes", { jti: "é".repeat(128) + "a" }],
    ["no iat", { iat: undefined }],
    ["an iat that is text", { iat: String(seconds) }],
    ["an iat that never ends", { iat: 9e15 }],
    ["an old iat", { iat: seconds - 3_600 }],
    ["a nonce that is a number", { nonce: 1 }],
    ["a nonce of all zeros", { nonce: "A".repeat(43) }],
  ])("with %s are refused", async (_what, claims) => {
    expect(await statusOf(proofWith({ claims }))).toBe(401);
  });

  it("may have a jti of 256 bytes", async () => {
    expect(await statusOf(proofWith({ claims: { jti: "é".repeat(128) } }))).toBe(200);
  });
});

it("an RSA key with a long exponent is not even tried", async () => {
  const { n = "" } = rsa.publicKey.export({ format: "jwk" });
  const odd = { kty: "RSA", n, e: `${n.slice(0, -2)}AQ` };
  const his = await signToken(pair, {
    iss: issuer,
    aud: "orders",
    sub: "mallory",
    iat: seconds,
    exp: seconds + 600,
    cnf: { jkt: await calculateJwkThumbprint(odd) },
  });
  const proof = proofBy(alice, { htu: URL_OF_IT, token: his, header: { jwk: odd, alg: "RS256" } });
  const lines = ["GET /a/b HTTP/1.1", `Host: ${HOST}`, "X-Forwarded-Proto: https"];
  const { last } = await exchange(
    gate,
    request([...lines, `Authorization: DPoP ${his}`, `DPoP: ${proof}`, "Connection: close"]),
  );
  expect([last.status, last.header("www-authenticate")]).toEqual([
    401,
    expect.stringContaining("invalid_dpop_proof"),
  ]);
});
