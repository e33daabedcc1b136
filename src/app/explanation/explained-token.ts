/** Texts for each step of verifying a token. The verifier decides; this file only describes its decision. */
import type { Decision } from "../../server/request/decide.ts";
import { GateError } from "../../core/request/errors.ts";
import type { ExplainedStep, ExplainedToken } from "../../core/explanation.ts";
import { Identity } from "../../core/request/identity.ts";
import { BoundToken } from "../../core/request/bound-token.ts";
import type { TokenVerifier } from "../../tokens/verify/verifier.ts";
import {
  type AskedRevocation,
  keysUnusable,
  newTrace,
  type QueriedServer,
  TOKEN_STEPS,
  type TokenRefusal,
  type TokenStep,
  type UnprovenVerdict,
  type VerificationTrace,
} from "../../core/request/token-verifier.ts";
import { placeWords } from "../../core/request/token-place.ts";
import { tokenOf } from "../../server/request/request-token.ts";
import { isOpaque, readableParts } from "../../tokens/verify/token-text.ts";
import type { Configuration } from "../../config/configuration.ts";
import { acceptsProofs } from "../gate/from-configuration.ts";
import { isKeyed } from "../gate/remote-checks.ts";
import { REVOCATION_FORMS, type RevocationKindName } from "../../core/revocation.ts";
import type { Clock } from "../../lib/clock.ts";
import { formatDuration } from "../../lib/text/duration.ts";
import { printable } from "../../lib/text/printable.ts";
import { maskText } from "../../observe/log/redaction.ts";
import { claimFaults } from "../../tokens/verify/claims.ts";
import type { SigningKeys } from "../../tokens/keys/key-ring.ts";

/** The settings and keys with which tokens are verified. */
export interface TokenSettings {
  readonly configuration: Configuration;
  readonly keys: SigningKeys;
  readonly clock: Clock;
}

/** One verification of a token. */
interface TokenContext extends TokenSettings {
  readonly token: string;
  readonly trace: VerificationTrace;
  /** The steps in the order in which they are taken. By default those of a token with claims; without a token, none. */
  readonly order?: readonly TokenStep[];
}

/** The order in which another server takes the steps. It needs no key, and its answer holds the claims. */
const REMOTE_STEPS: readonly TokenStep[] = [
  "bearer",
  "size",
  "form",
  "issuer",
  "key",
  "signature",
  "claims",
  "revocation",
  "proof",
];

/** A token with what can be read in it. */
interface ReadToken extends TokenContext {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
}

/** Returns the result of a step that the token passed, as text. */
function passDetail(step: TokenStep, token: ReadToken): string {
  const remote = token.trace.remote ? PASSED_REMOTELY[step]?.(token) : undefined;
  return remote ?? PASSED[step](token);
}

const PASSED: Readonly<Record<TokenStep, (token: ReadToken) => string>> = {
  bearer: () => "one token",
  size: ({ token, configuration }) => `${token.length} of ${configuration.tokens.maxBytes} bytes`,
  form: ({ header }) => `a signed token, ${textOf(header["alg"]) ?? "none"}`,
  issuer: ({ claims }) => `${textOf(claims["iss"])} is accepted here`,
  claims: ({ claims, clock }) => dateWords(claims, clock.now()).join(", "),
  key: ({ header }) =>
    header["kid"] === undefined ? "only one key fits" : `${textOf(header["kid"])} is known`,
  signature: () => "made with that key",
  revocation: ({ trace }) => revocationWords(trace.asked),
  proof: () => "the request proves to have what the token is bound to",
};

/** The same for a token that other servers verify, where it differs. */
const PASSED_REMOTELY: {
  readonly [Step in TokenStep]?: (token: ReadToken) => string | undefined;
} = {
  form: ({ token }) => (isOpaque(token) ? "opaque: only its issuer can read it" : undefined),
  issuer: ({ trace: { queried } }) =>
    queried.length === 0
      ? "no key here verifies it, and an answer of its issuer is cached"
      : `no key here verifies it, so ${queried.map(nameOf).join(", then ")} ${queried.length === 1 ? "is" : "are"} asked`,
  key: () => "none is needed",
  signature({ trace: { queried } }) {
    const vouching = queried.find(({ result }) => result === "accepted");
    return `${vouching === undefined ? "its issuer" : nameOf(vouching)} vouches for it`;
  },
  claims: () => "as the server reports them",
};

function revocationWords(asked: AskedRevocation | undefined): string {
  if (asked === undefined) return "it is not revoked";
  return "unasked" in asked
    ? `not checked: the running proxy was not asked (${asked.unasked}); its /-/explain knows`
    : `it is not revoked, says ${asked.address}`;
}

/** Returns why a token failed a step, as text. */
function failDetail(refusal: TokenRefusal, read: ReadToken): string {
  const { configuration, token, trace, claims } = read;
  const remote = trace.remote ? remoteFailDetail(refusal, trace) : undefined;
  if (remote !== undefined) return remote;
  switch (refusal.step) {
    case "bearer":
      if (refusal.detail !== undefined) return refusal.detail;
      return refusal.reason === "multiple"
        ? "there are two Authorization headers"
        : "there is no Authorization: Bearer";
    case "size":
      return `${token.length} bytes; the maximum is ${configuration.tokens.maxBytes}`;
    case "form":
      return refusal.detail ?? "it is not a signed token";
    case "issuer": {
      const { issuer: own, trusted } = configuration.tokens;
      const names = [own, ...trusted.map((each) => each.issuer)].map(textOf).join(", ");
      const issuer = textOf(claims["iss"]);
      return `${issuer === undefined ? 'there is no "iss"' : `${issuer} is not accepted here`}; ${names} would be`;
    }
    case "claims":
      return claimsDetail(refusal, read);
    case "key":
      return keyDetail(refusal, read);
    case "revocation":
      return revocationDetail(refusal.revoked?.by);
    case "proof":
      return refusal.detail ?? "Authorization: DPoP is for tokens that are bound to a key";
    case "signature":
      return "it does not match the key: the token was changed, or signed with another key";
  }
}

/** Returns why a token is revoked, as text. */
export function revocationDetail(kind: RevocationKindName | undefined): string {
  return kind === undefined ? "it is revoked" : REVOCATION_FORMS[kind].refusal;
}

function claimsDetail(
  { reason, expected }: TokenRefusal,
  { header, claims, clock }: ReadToken,
): string {
  switch (reason) {
    case "malformed":
      return claimFaults(claims, expected?.mapping).join("; ");
    case "audience":
      return `it is for ${textOf(claims["aud"]) ?? "nobody"}, and must be for ${[expected?.audiences ?? []].flat().map(textOf).join(" or ")}`;
    case "type":
      return `"typ" is ${textOf(header["typ"]) ?? "not there"}, and must be ${expected?.types?.join(" or ")}`;
    case "lifetime":
      return `the time from "iat" to "exp" must not exceed ${formatDuration(expected?.maxLifetimeMs ?? 0)}`;
    case "no_expiry":
      return 'there is no "exp"';
    case "sender_constrained":
      return '"cnf" binds it to something that is not checked here: a key, with proof: refuse, or anything else';
    case "unbound":
      return 'there is no "cnf" that binds it to a key, and proof is require';
    default: {
      const { skewMs = 0 } = expected ?? {};
      const allowed = skewMs === 0 ? "" : `; clocks may be ${formatDuration(skewMs)} apart`;
      return `${dateWords(claims, clock.now()).join(", ")}${allowed}`;
    }
  }
}

function keyDetail(
  { reason }: TokenRefusal,
  { header, claims, configuration, keys }: ReadToken,
): string {
  const kid = textOf(header["kid"]);
  const { issuer, trusted } = configuration.tokens;
  const own = claims["iss"] === issuer;
  if (reason === "keys_unusable") return "the keys of this issuer are not available at the moment";
  if (reason === "algorithm") {
    const algorithms = trusted
      .filter(isKeyed)
      .find((each) => each.issuer === claims["iss"])?.algorithms;
    const named = algorithms === undefined ? "" : `; it may be ${algorithms.join(" or ")}`;
    return `the key is not used with ${textOf(header["alg"])}${named}`;
  }
  const known = own ? `; known keys: ${keys.verification.map((key) => key.kid).join(", ")}` : "";
  return kid === undefined
    ? `it names no key, and not exactly one key fits${known}`
    : `${kid} is not a key of this issuer${known}`;
}

/** Returns the dates of a token relative to the local clock, in words. */
export function dateWords(claims: Readonly<Record<string, unknown>>, nowMs: number): string[] {
  return [
    ...dateWord(claims["iat"], nowMs, "issued", "issued"),
    ...dateWord(claims["nbf"], nowMs, "valid since", "not valid before"),
    ...dateWord(claims["exp"], nowMs, "ended", "ends"),
  ];
}

function dateWord(value: unknown, nowMs: number, past: string, future: string): string[] {
  if (typeof value !== "number" || !Number.isSafeInteger(value * 1000)) return [];
  const seconds = value - Math.floor(nowMs / 1000);
  const length = formatDuration(Math.abs(seconds) * 1000);
  if (seconds > 0) return [`${future} ${length} from now`];
  return [`${past} ${length} ago`];
}

/** Renders a value from a token for people: at most 256 characters, masked, without terminal control sequences. */
function textOf(value: unknown): string | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return printable(maskText(text.slice(0, 256)));
}

/** Returns why no issuer accepts the token; undefined if the reason is its form. */
function remoteFailDetail(
  { step, reason }: TokenRefusal,
  { queried }: VerificationTrace,
): string | undefined {
  if (reason === "inactive") {
    if (queried.length === 0) return "its issuer did not accept it a moment ago";
    return `${queried.map(nameOf).join(", ")} ${queried.length === 1 ? "does" : "do"} not accept the token`;
  }
  if (reason === "keys_unusable") {
    const silent = queried.filter(({ result }) => result === "unavailable");
    return `${silent.map(nameOf).join(", ")} ${silent.length === 1 ? "is" : "are"} unavailable at the moment`;
  }
  return step === "claims" ? `the server's answer does not fit: ${reason}` : undefined;
}

function nameOf({ issuer, label }: QueriedServer): string {
  return `${printable(issuer)} (${label})`;
}

/** Explains the decision about the token of a request; undefined if none was verified. */
export function explainToken(
  { request, endpoint, route, identity, tokenRefusal, trace = newTrace() }: Decision,
  settings: TokenSettings,
): ExplainedToken | undefined {
  const verdict = identity ?? tokenRefusal;
  if (verdict === undefined) return undefined;
  const { tokenFrom } = endpoint ?? route ?? {};
  const found = tokenOf(request, tokenFrom, acceptsProofs(settings.configuration));
  if (route?.auth === "certificate" || !("token" in found))
    return explainVerdict(verdict, { ...settings, token: "", trace, order: [] });
  const isKey = "apiKey" in found.place;
  const context = { ...settings, token: found.token, trace };
  const explained = explainVerdict(verdict, isKey ? { ...context, order: ["bearer"] } : context);
  return tokenFrom === undefined ? explained : { ...explained, place: placeWords(found.place) };
}

/** Verifies a token in the same way as for a request. @param trace records the steps. */
export async function verifyToken(
  token: string,
  tokens: Pick<TokenVerifier, "verify">,
  trace?: VerificationTrace,
): Promise<UnprovenVerdict> {
  try {
    return await tokens.verify(token, undefined, { tokenCache: undefined, trace });
  } catch (error) {
    if (!(error instanceof GateError) || error.code !== "keys_unusable") throw error;
    return keysUnusable(trace);
  }
}

/** Explains the verdict on a token by the steps that led to it. */
export function explainVerdict(verdict: UnprovenVerdict, context: TokenContext): ExplainedToken {
  const { header = {}, claims = {} } = readableParts(context.token);
  const refusal = "reason" in verdict ? verdict : undefined;
  const caller = verdict instanceof BoundToken ? verdict.claims : verdict;
  const { subject, groups, issuer } =
    "reason" in caller ? { subject: claims["sub"], groups: [], issuer: claims["iss"] } : caller;
  return {
    accepted: refusal === undefined,
    reason: refusal?.reason,
    steps: stepsTo(verdict, { ...context, header, claims }),
    subject: textOf(subject),
    groups,
    issuer: textOf(issuer),
    timeLeftMs: "reason" in caller ? undefined : caller.acceptedUntil - context.clock.now(),
  };
}

/** Returns the steps in the order in which they are taken, then those that were not reached. */
function stepsTo(verdict: UnprovenVerdict, token: ReadToken): ExplainedStep[] {
  const failed = "reason" in verdict ? verdict : undefined;
  const { trace, order = trace.remote ? REMOTE_STEPS : TOKEN_STEPS } = token;
  const isProven = verdict instanceof Identity && verdict.bound !== undefined;
  const last = failed?.step ?? trace.pardoned;
  const taken =
    last === undefined || !order.includes(last) ? order : order.slice(0, order.indexOf(last));
  const passed = taken.filter((step) => step !== "proof" || isProven);
  // Most tokens need no proof.
  const needed = TOKEN_STEPS.filter((step) => step !== "proof");
  const unreached = needed.filter((step) => step !== failed?.step && !passed.includes(step));
  const steps: ExplainedStep[] = passed.map((step) => {
    return { step, result: resultOf(step, token), detail: passDetail(step, token) };
  });
  if (failed !== undefined) {
    steps.push({ step: failed.step, result: "failed", detail: failDetail(failed, token) });
  }
  for (const step of unreached) steps.push({ step, result: "not reached", detail: "" });
  if (verdict instanceof BoundToken) {
    const detail = "each request must prove to have what the token is bound to";
    steps.push({ step: "proof", result: "not checked", detail });
  }
  return steps;
}

/** Returns the result of a step that the token passed. */
function resultOf(step: TokenStep, { trace }: TokenContext): ExplainedStep["result"] {
  const { asked } = trace;
  const unasked = step === "revocation" && asked !== undefined && "unasked" in asked;
  return unasked ? "not checked" : "ok";
}
