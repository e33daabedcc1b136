import { createHmac, type KeyObject, sign } from "node:crypto";

/** Signs the first two parts of a token. */
export type Signer = (input: string) => Buffer;

/** Builds a compact JWS. Strings and buffers are used exactly as given; anything else is written as JSON. */
export function compact(header: unknown, payload: unknown, signer: Signer): string {
  const input = `${part(header)}.${part(payload)}`;
  return `${input}.${signer(input).toString("base64url")}`;
}

function part(value: unknown): string {
  const bytes = typeof value === "string" || Buffer.isBuffer(value) ? value : JSON.stringify(value);
  return Buffer.from(bytes).toString("base64url");
}

/** ES256 with r and s concatenated (RFC 7518 §3.4). */
export function byKey(key: KeyObject): Signer {
  return (input) => sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" });
}

/** HMAC with SHA-256, SHA-384 or SHA-512. */
export function bySecret(bits: number, secret: string | Buffer): Signer {
  return (input) => createHmac(`sha${bits}`, secret).update(input).digest();
}

/** No signature at all. */
export const unsigned: Signer = () => Buffer.alloc(0);
