import type { TokenRefusal } from "../../core/request/token-verifier.ts";
import { isJsonObject, parseStrictJson } from "../../lib/text/strict-json.ts";
import { isSigningAlgorithm, type SigningAlgorithm } from "../keys/algorithms.ts";

/** A token taken apart. Nothing of it is proven yet. */
export interface UnverifiedToken {
  readonly algorithm: SigningAlgorithm;
  readonly kid: string | undefined;
  readonly payload: Record<string, unknown>;
}

// RFC 9068 §2.1 and RFC 8725 §3.11: a token of another kind, a logout token say, is not an access token.
const TYPES: readonly string[] = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"];
/** Header fields that change what is signed or how it is read. */
const EXTENSIONS: readonly string[] = ["crit", "b64", "zip"];
const PARTS = ["header", "payload", "signature"] as const;
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Takes a compact JWS (RFC 7515 §7.1) apart. Only the one canonical spelling is read: three parts in base64url that encode
 * to themselves again, so that no two texts are the same bytes. Two may still bear the same claims: beside an ECDSA signature
 * (r, s) the twin (r, n-s) is valid, which anybody can make. Extensions that change what is signed or how it is read (`crit`,
 * `b64`, `zip`) are refused; keys that a token brings along (`jwk`, `jku`, `x5c`, `x5u`) are not looked at.
 */
export function readToken(token: string): UnverifiedToken | TokenRefusal {
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
  if (header === undefined) return malformed("the header is no JSON object with every name once");
  if (payload === undefined) return malformed("the payload is no JSON object with every name once");
  return readHeader(header, payload);
}

/** What can be read of a token, its header and its claims. Nothing of it is proven, nor well formed. */
export function readableParts(token: string): {
  readonly header: Readonly<Record<string, unknown>> | undefined;
  readonly claims: Readonly<Record<string, unknown>> | undefined;
} {
  const [header, claims] = token
    .split(".", 2)
    .map((part) => jsonOf(Buffer.from(part, "base64url")));
  return { header, claims };
}

function readHeader(
  header: Record<string, unknown>,
  payload: Record<string, unknown>,
): UnverifiedToken | TokenRefusal {
  const extension = EXTENSIONS.find((name) => name in header);
  if (extension !== undefined) {
    return malformed(`the header has "${extension}", which is not supported`);
  }
  const { alg, kid, typ } = header;
  if (typeof alg !== "string") return malformed('the header has no "alg"');
  if (kid !== undefined && typeof kid !== "string") return malformed('"kid" is no text');
  if (typ !== undefined && !(typeof typ === "string" && TYPES.includes(typ.toLowerCase()))) {
    return malformed('"typ" says that it is no access token');
  }
  if (isSigningAlgorithm(alg)) return { algorithm: alg, kid, payload };
  const detail = '"alg" is no signature algorithm that is supported';
  return { step: "form", reason: "algorithm", detail };
}

function malformed(detail: string): TokenRefusal {
  return { step: "form", reason: "malformed", detail };
}

function jsonOf(bytes: Buffer | undefined): Record<string, unknown> | undefined {
  try {
    const value = parseStrictJson(utf8.decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
