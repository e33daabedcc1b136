import type { Configuration } from "../../config/schema.ts";
import { GateError } from "../../core/errors.ts";
import type { ExplainedStep } from "../../core/explanation.ts";
import { Identity } from "../../core/identity.ts";
import type { TokenRefusal } from "../../core/token-verifier.ts";
import { formatDuration } from "../../lib/duration.ts";
import { printable } from "../../lib/printable.ts";
import { maskText } from "../../observe/redaction.ts";
import type { SigningKeys } from "../../tokens/signing-keys.ts";
import { claimFaults, formFault, readableParts } from "../../tokens/token-faults.ts";

/** Words for each step of the verdict on a token; what decides is the verifier. */

/** What tokens are judged by. */
export interface TokenSurroundings {
  readonly configuration: Configuration;
  readonly keys: SigningKeys;
  readonly nowMs: number;
}

/** What the verifier says; `error` when it could not tell or there was no token to give it. */
export type TokenVerdict = Identity | TokenRefusal | GateError;

type Step = ExplainedStep["step"];

/** The word that the log has for a refusal. */
export function reasonOf(verdict: TokenVerdict): string | undefined {
  if (verdict instanceof Identity) return undefined;
  return verdict instanceof GateError ? (verdict.reason ?? verdict.code) : verdict;
}

export function goodOf(step: Step, token: string, surroundings: TokenSurroundings): string {
  const { header = {}, claims = {} } = readableParts(token);
  switch (step) {
    case "bearer":
      return "one token";
    case "size":
      return `${token.length} of ${surroundings.configuration.tokens.maxBytes} bytes`;
    case "form":
      return `a signed token, ${textOf(header["alg"]) ?? "none"}`;
    case "issuer":
      return `${textOf(claims["iss"])} is accepted here`;
    case "claims":
      return timesOf(claims, surroundings.nowMs).join(", ");
    case "key":
      return header["kid"] === undefined
        ? "the one key that fits"
        : `${textOf(header["kid"])} is known`;
    case "signature":
      return "made with that key";
  }
}

export function faultOf(
  step: Step,
  token: string,
  verdict: TokenVerdict,
  surroundings: TokenSurroundings,
): string {
  const { configuration } = surroundings;
  const { header = {}, claims = {} } = readableParts(token);
  const reason = reasonOf(verdict);
  switch (step) {
    case "bearer":
      return reason === "multiple"
        ? "there are two Authorization headers"
        : "there is no Authorization: Bearer";
    case "size":
      return `${token.length} bytes, and ${configuration.tokens.maxBytes} are read at most`;
    case "form":
      return formFault(token) ?? "it is not a signed token";
    case "issuer": {
      const names = issuersOf(configuration).map(textOf).join(", ");
      const issuer = textOf(claims["iss"]);
      return `${issuer === undefined ? 'there is no "iss"' : `${issuer} is not accepted here`}; ${names} would be`;
    }
    case "claims":
      return claimsFault(reason, claims, surroundings);
    case "key":
      return keyFault(reason, header, claims, surroundings);
    case "signature":
      return "it is not that of the key: the token was changed, or signed with another key";
  }
}

function claimsFault(
  reason: string | undefined,
  claims: Readonly<Record<string, unknown>>,
  surroundings: TokenSurroundings,
): string {
  switch (reason) {
    case "malformed":
      return claimFaults(claims).join("; ");
    case "audience": {
      const { audience } = expectationsOf(claims["iss"], surroundings.configuration);
      return `it is for ${textOf(claims["aud"]) ?? "nobody"}, and must be for ${textOf(audience)}`;
    }
    case "no_expiry":
      return 'there is no "exp"';
    default: {
      const skew = skewOf(claims["iss"], surroundings);
      const allowed = skew === 0 ? "" : `; clocks may be ${formatDuration(skew)} apart`;
      return `${timesOf(claims, surroundings.nowMs).join(", ")}${allowed}`;
    }
  }
}

function keyFault(
  reason: string | undefined,
  header: Readonly<Record<string, unknown>>,
  claims: Readonly<Record<string, unknown>>,
  { configuration, keys }: TokenSurroundings,
): string {
  const kid = textOf(header["kid"]);
  const own = claims["iss"] === configuration.tokens.issuer;
  if (reason === "keys_unusable") return "the keys of this issuer cannot be had at the moment";
  if (reason === "algorithm") {
    const { algorithms } = expectationsOf(claims["iss"], configuration);
    const named = algorithms === undefined ? "" : `; ${algorithms.join(", ")} may be`;
    return `the key is not used with ${textOf(header["alg"])}${named}`;
  }
  const known = own ? `; known are ${keys.verification.map((key) => key.kid).join(", ")}` : "";
  return kid === undefined
    ? `it names no key, and there is not exactly one that fits${known}`
    : `${kid} is no key of this issuer${known}`;
}

function issuersOf({ tokens }: Configuration): string[] {
  return [tokens.issuer, ...tokens.trusted.map(({ issuer }) => issuer)];
}

function expectationsOf(issuer: unknown, { tokens }: Configuration) {
  const trusted = tokens.trusted.find((each) => each.issuer === issuer);
  return {
    audience: trusted?.audience ?? tokens.audience,
    algorithms: trusted?.algorithms,
    skewMs: trusted?.clockSkew ?? 0,
  };
}

export function skewOf(issuer: unknown, { configuration }: TokenSurroundings): number {
  return expectationsOf(issuer, configuration).skewMs;
}

/** The dates of a token against the clock here, in words. */
export function timesOf(claims: Readonly<Record<string, unknown>>, nowMs: number): string[] {
  return [
    ...timeOf(claims["iat"], nowMs, "issued", "issued"),
    ...timeOf(claims["nbf"], nowMs, "valid since", "not valid before"),
    ...timeOf(claims["exp"], nowMs, "ended", "ends"),
  ];
}

function timeOf(value: unknown, nowMs: number, past: string, future: string): string[] {
  if (typeof value !== "number" || !Number.isSafeInteger(value * 1000)) return [];
  const seconds = value - Math.floor(nowMs / 1000);
  const length = formatDuration(Math.abs(seconds) * 1000);
  if (seconds > 0) return [`${future} ${length} from now`];
  return [`${past} ${length} ago`];
}

/** A value of a token for a person to read: bounded, and without what could steer a terminal. */
export function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return printable(maskText(text.slice(0, 256)));
}
