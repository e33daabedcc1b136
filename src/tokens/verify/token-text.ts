import type { TokenRefusal } from "../../core/request/token-verifier.ts";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";
import { isSigningAlgorithm, type SigningAlgorithm } from "../keys/algorithms.ts";

/** A parsed token. Nothing in it is verified yet. */
export interface UnverifiedToken {
  readonly algorithm: SigningAlgorithm;
  readonly kid: string | undefined;
  /** `typ` in lower case, without `application/` (RFC 7515 §4.1.9); undefined if there is none. */
  readonly type: string | undefined;
  readonly payload: Record<string, unknown>;
}

// RFC 9068 §2.1 and RFC 8725 §3.11: a token of another kind, such as a logout token, is not an access token.
const ACCESS_TOKEN_TYPES: readonly string[] = ["jwt", "at+jwt"];
/** Header fields that change what is signed or how it is read. */
const EXTENSIONS: readonly string[] = ["crit", "b64", "zip"];
const PARTS = ["header", "payload", "signature"] as const;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Parses a compact JWS (RFC 7515 §7.1). Accepts only the canonical spelling: three parts in base64url that encode to
 * themselves again, so that no two texts encode the same bytes. Two tokens may still carry the same claims: for each
 * ECDSA signature (r, s), anybody can compute (r, n-s), which is valid too. Refuses extensions that change what is
 * signed or how it is read (`crit`, `b64`, `zip`). Ignores keys inside the token (`jwk`, `jku`, `x5c`, `x5u`).
 * @param types values of `typ` that some issuer may use in addition to those of access tokens.
 */
export function readToken(
  token: string,
  types: readonly string[] = [],
): UnverifiedToken | TokenRefusal {
  const parts = token.split(".", PARTS.length + 1);
  if (parts.length !== PARTS.length) {
    const count = parts.length < PARTS.length ? parts.length : `more than ${PARTS.length}`;
    return malformed(`it has ${count} parts joined by dots instead of ${PARTS.length}`);
  }
  const bytes = parts.map((part) => Buffer.from(part, "base64url"));
  for (const [index, name] of PARTS.entries()) {
    if (!bytes[index]?.length) return malformed(`the ${name} is empty`);
    if (bytes[index].toString("base64url") !== parts[index]) {
      return malformed(`the ${name} is not base64url without padding`);
    }
  }
  const header = jsonOf(bytes[0]);
  const payload = jsonOf(bytes[1]);
  if (header === undefined) return malformed("the header is not a JSON object with unique names");
  if (payload === undefined) return malformed("the payload is not a JSON object with unique names");
  const extension = EXTENSIONS.find((name) => name in header);
  if (extension !== undefined) {
    return malformed(`the header has "${extension}", which is not supported`);
  }
  const { alg, kid, typ } = header;
  if (typeof alg !== "string") return malformed('the header has no "alg"');
  if (kid !== undefined && typeof kid !== "string") return malformed('"kid" is not a string');
  const type = typeof typ === "string" ? typeName(typ) : undefined;
  if (typ !== undefined && !(isAccessToken(type) || (type !== undefined && types.includes(type)))) {
    return malformed(NO_ACCESS_TOKEN);
  }
  if (isSigningAlgorithm(alg)) return { algorithm: alg, kid, type, payload };
  const detail = '"alg" is not a supported signature algorithm';
  return { step: "form", reason: "algorithm", detail };
}

/** Reports whether a token does not have the form of a JWS, three parts joined by dots. */
export function isOpaque(token: string): boolean {
  return token.split(".", PARTS.length + 1).length !== PARTS.length;
}

/** Returns the header and the claims of a token: neither verified nor necessarily well formed. */
export function readableParts(token: string): {
  readonly header: Readonly<Record<string, unknown>> | undefined;
  readonly claims: Readonly<Record<string, unknown>> | undefined;
} {
  const [header, claims] = token
    .split(".", 2)
    .map((part) => jsonOf(Buffer.from(part, "base64url")));
  return { header, claims };
}

const NO_ACCESS_TOKEN = '"typ" is not the type of an access token';

/** Normalizes a `typ` for comparison: media types are case-insensitive, and `application/` is optional. */
export function typeName(typ: string): string {
  return typ.toLowerCase().replace(/^application\//, "");
}

function isAccessToken(type: string | undefined): boolean {
  return type !== undefined && ACCESS_TOKEN_TYPES.includes(type);
}

/** Refuses a token whose `typ` its issuer may not use. @param types undefined for those of access tokens. */
export function typeFault(
  { type }: UnverifiedToken,
  types: readonly string[] | undefined,
): TokenRefusal | undefined {
  if (types === undefined) {
    return type === undefined || isAccessToken(type) ? undefined : malformed(NO_ACCESS_TOKEN);
  }
  return type !== undefined && types.includes(type)
    ? undefined
    : { step: "claims", reason: "type" };
}

function malformed(detail: string): TokenRefusal {
  return { step: "form", reason: "malformed", detail };
}

function jsonOf(bytes: Buffer | undefined): Record<string, unknown> | undefined {
  try {
    return jsonObjectIn(utf8.decode(bytes));
  } catch {
    return undefined;
  }
}
