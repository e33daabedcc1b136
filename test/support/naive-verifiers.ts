/**
 * Token verifiers, each with a fault known from security advisories. The attacks in test/security/token-* succeed
 * against them. Each returns the payload that it accepts, or throws.
 */
import {
  createHmac,
  createPublicKey,
  type KeyObject,
  verify as verifySignature,
  type webcrypto,
} from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

type Payload = Readonly<Record<string, unknown>>;
export type NaiveVerifier = (token: string) => Promise<Payload>;

/** Whether a naive verifier accepts a token. */
export function believes(verifier: NaiveVerifier, token: string): Promise<boolean> {
  return verifier(token).then(
    () => true,
    () => false,
  );
}

/** Decodes the payload and checks the times with JavaScript's loose comparison. Never verifies the signature. */
export const decoding: NaiveVerifier = async (token) => {
  const { payload } = read(token);
  const now = Date.now() / 1000;
  if (Number(payload["exp"]) < now || Number(payload["nbf"]) > now) throw new Error("time");
  return payload;
};

/** Lets the token choose the algorithm, and uses the same key for all of them: CVE-2015-9235. */
export function trustingTheAlgorithm(held: string | Buffer): NaiveVerifier {
  return async (token) => {
    const { header, payload, input, signature } = read(token);
    const alg = `${Object(header["alg"] ?? "none")}`.trim();
    if (alg.toLowerCase() === "none") return payload;
    return provided(isHmac(alg, held, input, signature), payload);
  };
}

/** Verifies with the key that the token contains or links to: CVE-2018-0114. */
export const trustingTheHeader: NaiveVerifier = async (token) => {
  const { header, payload, input, signature } = read(token);
  const { jwk, jku, x5u, x5c } = header;
  if (jwk !== undefined) return provided(isSigned(fromJwk(jwk), input, signature), payload);
  if (Array.isArray(x5c)) {
    const der = Buffer.from(String(x5c[0]), "base64");
    const key = createPublicKey({ key: der, format: "der", type: "spki" });
    return provided(isSigned(key, input, signature), payload);
  }
  const fetched = await (await fetch(String(jku ?? x5u))).text();
  const key = jku === undefined ? createPublicKey(fetched) : fromJwk(JSON.parse(fetched).keys[0]);
  return provided(isSigned(key, input, signature), payload);
};

/** Looks up an HMAC secret by `kid`: as a file name, pasted into a query, or as a key of an object. */
export function lookingUpKid(how: "file" | "query" | "object", directory = ""): NaiveVerifier {
  const secrets: Readonly<Record<string, unknown>> = {};
  return async (token) => {
    const { header, payload, input, signature } = read(token);
    const kid = String(header["kid"]);
    const lookUps = {
      file: () => readFile(join(directory, kid)),
      query: async () => /UNION SELECT '([^']*)'/.exec(`WHERE kid = '${kid}'`)?.[1] ?? "",
      object: async () => String(secrets[kid]),
    };
    return provided(isHmac("HS256", await lookUps[how](), input, signature), payload);
  };
}

/** Has the right key but is lenient in everything else: base64 variants, signature encodings, header parameters. */
export function lenient(keys: Readonly<Record<string, KeyObject>>): NaiveVerifier {
  return async (token) => {
    const { header, payload, input, signature } = read(token);
    const key = keys[String(header["kid"])];
    return provided(key !== undefined && isSigned(key, input, signature), payload);
  };
}

/** Caches verified tokens by header and payload, and never checks them again, not even `exp` or the keys. */
export function remembering(verifier: NaiveVerifier): NaiveVerifier {
  const seen = new Map<string, Payload>();
  return async (token) => {
    const start = token.slice(0, token.lastIndexOf("."));
    const payload = seen.get(start) ?? (await verifier(token));
    seen.set(start, payload);
    return payload;
  };
}

function read(token: string) {
  const [head = "", body = "", signature = ""] = token.split(".");
  const parsed = (part: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(part, "base64url").toString());
  return {
    header: parsed(head),
    payload: parsed(body),
    input: `${head}.${body}`,
    signature: Buffer.from(signature, "base64url"),
  };
}

function provided(sound: boolean, payload: Payload): Payload {
  if (!sound) throw new Error("signature");
  return payload;
}

function isHmac(alg: string, secret: string | Buffer, input: string, signature: Buffer): boolean {
  const expected = createHmac(`sha${alg.slice(2)}`, secret)
    .update(input)
    .digest();
  return expected.equals(signature);
}

/** Accepts both encodings: P1363 for 64 bytes, otherwise DER. */
function isSigned(key: KeyObject, input: string, signature: Buffer): boolean {
  const dsaEncoding = signature.length === 64 ? "ieee-p1363" : "der";
  return verifySignature("sha256", Buffer.from(input), { key, dsaEncoding }, signature);
}

function fromJwk(jwk: unknown): KeyObject {
  return createPublicKey({ key: jwk as webcrypto.JsonWebKey, format: "jwk" });
}
