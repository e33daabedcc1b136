import { isJsonObject, parseStrictJson } from "../lib/strict-json.ts";
import type { IdentityClaims } from "../core/identity.ts";
import { isSigningAlgorithm } from "./algorithms.ts";
import { readClaims } from "./claims.ts";
import { EXTENSIONS, TYPES } from "./token-text.ts";

/**
 * Words for what `readToken` and `readClaims` refuse, for those who run Sallyport. Nothing here decides anything, and
 * nothing is ever told to a client.
 */

/** Header and claims of a token as far as they can be read, and nothing proven. */
export interface ReadableParts {
  readonly header: Readonly<Record<string, unknown>> | undefined;
  readonly claims: Readonly<Record<string, unknown>> | undefined;
}

export function readableParts(token: string): ReadableParts {
  const [head = "", body = ""] = token.split(".");
  return { header: objectOf(head), claims: objectOf(body) };
}

/** What is wrong with the form of a token (RFC 7515 §7.1); undefined when `readToken` reads it. */
export function formFault(token: string): string | undefined {
  const parts = token.split(".");
  if (parts.length !== 3) return `it has ${parts.length} parts joined by dots instead of 3`;
  for (const [index, name] of ["header", "payload", "signature"].entries()) {
    const fault = spellingFault(parts[index] ?? "");
    if (fault !== undefined) return `the ${name} ${fault}`;
  }
  const { header, claims } = readableParts(token);
  if (header === undefined) return "the header is no JSON object with every name once";
  if (claims === undefined) return "the payload is no JSON object with every name once";
  return headerFault(header);
}

function spellingFault(part: string): string | undefined {
  const bytes = Buffer.from(part, "base64url");
  if (part === "" || bytes.length === 0) return "is empty";
  return bytes.toString("base64url") === part ? undefined : "is not base64url without padding";
}

function headerFault(header: Readonly<Record<string, unknown>>): string | undefined {
  const extension = EXTENSIONS.find((name) => name in header);
  if (extension !== undefined) return `the header has "${extension}", which is not supported`;
  const { alg, kid, typ } = header;
  if (typeof alg !== "string") return 'the header has no "alg"';
  if (kid !== undefined && typeof kid !== "string") return '"kid" is no text';
  const fits = typ === undefined || (typeof typ === "string" && TYPES.includes(typ.toLowerCase()));
  if (!fits) return '"typ" says that it is no access token';
  return isSigningAlgorithm(alg) ? undefined : '"alg" is no signature algorithm that is supported';
}

const WANTED = {
  sub: "must be 1 to 255 characters without control characters",
  groups: "must be a list of names without control characters",
  nbf: "must be a number of seconds",
  iat: "must be a number of seconds",
  exp: "must be a number of seconds",
} as const;

/** The claims that have a form which is never accepted, each with what it must be. */
export function claimFaults(claims: Readonly<Record<string, unknown>>): string[] {
  return Object.entries(WANTED).flatMap(([name, wanted]) => {
    // Each by itself among others that are good; a claim that is not there is judged as missing.
    const alone = { sub: "a", aud: "a", exp: Number.MAX_SAFE_INTEGER, [name]: claims[name] };
    return judged(alone) === "malformed" ? [`"${name}" ${wanted}`] : [];
  });
}

function judged(claims: Record<string, unknown>): IdentityClaims | string {
  return readClaims(claims, "", { audience: "a", skewMs: 0, issuedAheadMs: 0 }, 0);
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

function objectOf(part: string): Record<string, unknown> | undefined {
  try {
    const value = parseStrictJson(utf8.decode(Buffer.from(part, "base64url")));
    return isJsonObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
