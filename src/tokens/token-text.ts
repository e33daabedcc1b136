import { isJsonObject, parseStrictJson } from "../lib/strict-json.ts";
import { isSigningAlgorithm, type SigningAlgorithm } from "./algorithms.ts";

/** A token taken apart. Nothing of it is proven yet. */
export interface UnverifiedToken {
  readonly algorithm: SigningAlgorithm;
  readonly kid: string | undefined;
  readonly payload: Record<string, unknown>;
}

// RFC 9068 §2.1 and RFC 8725 §3.11: a token of another kind, a logout token say, is not an access token.
export const TYPES: readonly string[] = ["jwt", "at+jwt", "application/jwt", "application/at+jwt"];
/** Header fields that change what is signed or how it is read. */
export const EXTENSIONS: readonly string[] = ["crit", "b64", "zip"];
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Takes a compact JWS (RFC 7515 §7.1) apart. Only the one canonical spelling is read: three parts in base64url that encode
 * to themselves again, so that no two texts are the same bytes. Two may still bear the same claims: beside an ECDSA signature
 * (r, s) the twin (r, n-s) is valid, which anybody can make. Extensions that change what is signed or how it is read (`crit`,
 * `b64`, `zip`) are refused; keys that a token brings along (`jwk`, `jku`, `x5c`, `x5u`) are not looked at.
 */
export function readToken(token: string): UnverifiedToken | "malformed" | "algorithm" {
  const [head = "", body = "", signature = "", rest] = token.split(".", 4);
  if (rest !== undefined || decode(signature) === undefined) return "malformed";
  const header = jsonOf(head);
  const payload = jsonOf(body);
  if (header === undefined || payload === undefined) return "malformed";
  const { alg, kid, typ } = header;
  if (EXTENSIONS.some((name) => name in header)) return "malformed";
  if (typeof alg !== "string") return "malformed";
  if (kid !== undefined && typeof kid !== "string") return "malformed";
  if (typ !== undefined && !(typeof typ === "string" && TYPES.includes(typ.toLowerCase()))) {
    return "malformed";
  }
  return isSigningAlgorithm(alg) ? { algorithm: alg, kid, payload } : "algorithm";
}

function decode(part: string): Buffer | undefined {
  const bytes = Buffer.from(part, "base64url");
  return bytes.length > 0 && bytes.toString("base64url") === part ? bytes : undefined;
}

function jsonOf(part: string): Record<string, unknown> | undefined {
  const bytes = decode(part);
  if (bytes === undefined) return undefined;
  try {
    const value = parseStrictJson(utf8.decode(bytes));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
