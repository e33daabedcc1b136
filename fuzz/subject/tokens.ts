import { createHmac, createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { calculateJwkThumbprint } from "jose";
import type { Credentials } from "./subject.ts";

export const ISSUER = "fuzz";
export const AUDIENCE = "fuzz";

/** The DER prefix of an Ed25519 private key of 32 bytes (RFC 8410 §7). */
const PKCS8_HEAD = "302e020100300506032b657004220420";

/** Creates a fixed key. Ed25519 signatures are deterministic, so a repeated case has the same bytes. */
function keyOf(octet: string): KeyObject {
  const der = Buffer.from(PKCS8_HEAD + octet.repeat(32), "hex");
  return createPrivateKey({ key: der, format: "der", type: "pkcs8" });
}

/** Returns the proxy's signing key as PEM. */
export function signingKeyPem(): string {
  return keyOf("5a").export({ format: "pem", type: "pkcs8" });
}

const CLAIMS = {
  iss: ISSUER,
  sub: "alice",
  aud: AUDIENCE,
  iat: 1_700_000_000,
  exp: 4_000_000_000,
  jti: "fuzz-1",
  groups: ["sales"],
};

/** Returns a token that the proxy accepts, and forgeries of it. */
export async function credentials(): Promise<Credentials> {
  const key = keyOf("5a");
  const publicKey = createPublicKey(key);
  const kid = await calculateJwkThumbprint(publicKey);
  const header = { alg: "EdDSA", kid, typ: "JWT" };
  const own = (claims: object, head: object = header): string => signed(key, head, claims);
  const pem = publicKey.export({ format: "pem", type: "spki" });
  const [head = "", body = "", signature = ""] = own(CLAIMS).split(".");
  return {
    valid: own(CLAIMS),
    refused: [
      own({ ...CLAIMS, exp: 1_700_000_001 }),
      own({ ...CLAIMS, nbf: 3_999_999_999 }),
      own({ ...CLAIMS, aud: "another" }),
      own({ ...CLAIMS, iss: "another" }),
      own({ ...CLAIMS, exp: undefined }),
      own(CLAIMS, { ...header, crit: ["exp"] }),
      own(CLAIMS, { ...header, typ: "logout+jwt" }),
      signed(keyOf("a5"), header, CLAIMS),
      signed(
        keyOf("a5"),
        { ...header, jwk: createPublicKey(keyOf("a5")).export({ format: "jwk" }) },
        CLAIMS,
      ),
      unsigned({ ...header, alg: "none" }, CLAIMS, ""),
      unsigned({ ...header, alg: "None" }, CLAIMS, signature),
      ...[pem, pem.trim()].map((secret) => hmac({ ...header, alg: "HS256" }, secret)),
      `${head}.${encoded({ ...CLAIMS, sub: "root" })}.${signature}`,
      `${head}.${body}.${"A".repeat(86)}`,
      `${head}.${body}.`,
    ],
  };
}

/** Returns a function that signs tokens which the proxy accepts. @param claims in addition to the usual ones. */
export async function signer(): Promise<(claims: object) => string> {
  const key = keyOf("5a");
  const kid = await calculateJwkThumbprint(createPublicKey(key));
  const header = { alg: "EdDSA", kid, typ: "JWT" };
  return (claims) => signed(key, header, { ...CLAIMS, ...claims });
}

function encoded(value: unknown): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function signed(key: KeyObject, header: object, claims: object): string {
  const input = `${encoded(header)}.${encoded(claims)}`;
  return `${input}.${sign(null, Buffer.from(input), key).toString("base64url")}`;
}

function unsigned(header: object, claims: object, signature: string): string {
  return `${encoded(header)}.${encoded(claims)}.${signature}`;
}

function hmac(header: object, secret: string | Buffer): string {
  const input = `${encoded(header)}.${encoded(CLAIMS)}`;
  return `${input}.${createHmac("sha256", secret).update(input).digest("base64url")}`;
}
