import {
  createHmac,
  generateKeyPairSync,
  type KeyObject,
  sign,
  type SignKeyObjectInput,
} from "node:crypto";
import type { Target } from "./deployment.ts";
import { FORGED_ADDRESS, forgery } from "./expectations.ts";

/** The headers with which Sallyport can name the caller to a backend, by the names of its presets. */
export const SALLYPORT_NAMES = [
  "X-Auth-Subject",
  "X-Auth-Groups",
  "X-Auth-Issuer",
  "X-Forwarded-User",
  "X-Forwarded-Groups",
  "X-Remote-User",
  "X-Remote-Groups",
] as const;

/**
 * Returns spellings that some servers treat as the same name: CGI, WSGI and PHP do not distinguish `-`, `_` and `.`.
 */
function aliases(name: string): string[] {
  const spellings = [
    name,
    name.toLowerCase(),
    name.toUpperCase(),
    name.replaceAll("-", "_"),
    name.replace("-", "_"),
    name.replaceAll("-", "."),
  ];
  // The name occurs first and last, for servers that use the first or the last value.
  return [...new Set(spellings), name];
}

/** Returns forged identity headers, in every spelling. */
export function forgedIdentities({ identityNames }: Target, mark: string): string[] {
  return identityNames.flatMap(aliases).map((name) => `${name}: ${forgery(mark)}`);
}

/** Returns headers that forge the address of the client, and the host and scheme of its request. */
export function forwarded(mark: string): string[] {
  const host = `${forgery(mark)}.example`;
  return [
    `X-Forwarded-For: ${FORGED_ADDRESS}`,
    `x-forwarded-for: ${FORGED_ADDRESS}`,
    `X-Forwarded-Host: ${host}`,
    `X-Forwarded-Proto: ${forgery(mark)}`,
    `X-Forwarded-Port: ${forgery(mark)}`,
    `X-Real-IP: ${FORGED_ADDRESS}`,
    `Forwarded: for=${FORGED_ADDRESS};host=${host};proto=http`,
  ];
}

/** Returns headers whose names some servers take for other names. */
export function shadows(mark: string): string[] {
  const names = ["X_Forwarded_For", "X-Forwarded_Host", "X.Forwarded.Proto", "X_Real_IP"];
  return [...names, "X_Request_Id", "Content_Length", "Transfer_Encoding"].map(
    (name) => `${name}: ${forgery(mark)}`,
  );
}

/** A decoded token, not verified. */
export interface TokenParts {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  /** As written in the token. */
  readonly head: string;
  readonly payload: string;
  readonly signature: string;
}

/** Decodes a token. Returns undefined if the text is not a signed token in compact serialization (RFC 7515 §7.1). */
export function tokenParts(token: string): TokenParts | undefined {
  const [head = "", payload = "", signature = "", ...more] = token.split(".");
  const header = objectIn(head);
  const claims = objectIn(payload);
  if (header === undefined || claims === undefined) return undefined;
  return signature === "" || more.length > 0
    ? undefined
    : { header, claims, head, payload, signature };
}

function objectIn(part: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(Buffer.from(part, "base64url").toString("utf8"));
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

export function encoded(value: unknown): string {
  return Buffer.from(typeof value === "string" ? value : JSON.stringify(value)).toString(
    "base64url",
  );
}

const HASHES = { HS256: "sha256", HS384: "sha384", HS512: "sha512" } as const;

export const HMAC_ALGORITHMS = ["HS256", "HS384", "HS512"] as const;

/** Signs the same claims with a secret that an attacker knows. */
export function withHmac(
  { header, payload }: TokenParts,
  alg: keyof typeof HASHES,
  secret: string | Buffer,
  more: Record<string, unknown> = {},
): string {
  const input = `${encoded({ ...header, alg, ...more })}.${payload}`;
  return `${input}.${createHmac(HASHES[alg], secret).update(input).digest("base64url")}`;
}

/** A key pair of the attacker. */
interface AttackerKey {
  readonly publicKey: KeyObject;
  /** Signs the same claims with that key. */
  sign(parts: TokenParts, more?: Record<string, unknown>): string;
}

/** @param alg the algorithm of valid tokens; the key has the same type for RS* and EdDSA, and is P-256 otherwise. */
export function createAttackerKey(alg: unknown): AttackerKey {
  const kind = String(alg).startsWith("RS") ? "RS256" : alg === "EdDSA" ? "EdDSA" : "ES256";
  const { publicKey, privateKey } = pairFor(kind);
  const key: SignKeyObjectInput = { key: privateKey, dsaEncoding: "ieee-p1363" };
  return {
    publicKey,
    sign({ header, payload }, more = {}) {
      const input = `${encoded({ ...header, alg: kind, ...more })}.${payload}`;
      const hash = kind === "EdDSA" ? null : "sha256";
      return `${input}.${sign(hash, Buffer.from(input), key).toString("base64url")}`;
    },
  };
}

function pairFor(kind: "RS256" | "EdDSA" | "ES256") {
  switch (kind) {
    case "RS256":
      return generateKeyPairSync("rsa", { modulusLength: 2048 });
    case "EdDSA":
      return generateKeyPairSync("ed25519");
    case "ES256":
      return generateKeyPairSync("ec", { namedCurve: "P-256" });
  }
}

/** Returns the forms of a public key that a careless verifier may use as an HMAC secret. */
export function spellings(key: KeyObject): (string | Buffer)[] {
  const pem = key.export({ format: "pem", type: "spki" });
  const der = key.export({ format: "der", type: "spki" });
  const jwk = JSON.stringify(key.export({ format: "jwk" }));
  return [pem, pem.trim(), der, der.toString("base64"), jwk];
}

const ALPHABET = Array.from({ length: 64 }, (_, sextet) =>
  Buffer.of(sextet << 2)
    .toString("base64url")
    .charAt(0),
);

/**
 * Returns other texts that decode to the same bytes: the last character has unused bits, and some decoders are lenient.
 */
export function otherSpellings(part: string): string[] {
  const bytes = Buffer.from(part, "base64url");
  const last = ALPHABET.map((letter) => part.slice(0, -1) + letter);
  const lenient = [
    ...[`${part}=`, `${part}==`, `${part}%3D`, `${part}.`],
    ...[part.replaceAll("-", "+"), part.replaceAll("_", "/")],
    `${part.slice(0, 8)} ${part.slice(8)}`,
  ];
  const same = last.filter((text) => Buffer.from(text, "base64url").equals(bytes));
  return [...same, ...lenient].filter((text) => text !== part);
}
