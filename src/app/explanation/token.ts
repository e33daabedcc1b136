import { GateError } from "../../core/errors.ts";
import type { ExplainedStep, ExplainedToken } from "../../core/explanation.ts";
import { Identity } from "../../core/identity.ts";
import type { TokenVerifier } from "../../core/token-verifier.ts";
import { acceptedUntil } from "../../tokens/claims.ts";
import { formFault, readableParts } from "../../tokens/token-faults.ts";
import {
  faultOf,
  goodOf,
  reasonOf,
  skewOf,
  textOf,
  type TokenSurroundings,
  type TokenVerdict,
} from "./token-words.ts";

/** Asks the verifier of the request path. */
export async function verdictOn(token: string, tokens: TokenVerifier): Promise<TokenVerdict> {
  try {
    return await tokens.verify(token);
  } catch (error) {
    if (error instanceof GateError) return error;
    throw error;
  }
}

const STEPS = ["bearer", "size", "form", "issuer", "claims", "key", "signature"] as const;
type Step = ExplainedStep["step"];

/** The verifier's verdict as the steps that lead to it, in its own order. */
export function explainToken(
  token: string,
  verdict: TokenVerdict,
  surroundings: TokenSurroundings,
): ExplainedToken {
  const identity = verdict instanceof Identity ? verdict : undefined;
  const failed = identity === undefined ? failedStep(token, verdict) : undefined;
  const reached = failed === undefined ? STEPS.length : STEPS.indexOf(failed);
  const { claims = {} } = readableParts(token);
  const steps = STEPS.map((step, index): ExplainedStep => {
    if (index > reached) return { step, result: "not reached", detail: "" };
    if (step === failed) {
      return { step, result: "failed", detail: faultOf(step, token, verdict, surroundings) };
    }
    return { step, result: "ok", detail: goodOf(step, token, surroundings) };
  });
  return {
    accepted: identity !== undefined,
    reason: reasonOf(verdict),
    steps,
    subject: textOf(identity?.subject ?? claims["sub"]),
    groups: identity?.groups ?? [],
    issuer: textOf(identity?.issuer ?? claims["iss"]),
    timeLeftMs:
      identity === undefined
        ? undefined
        : acceptedUntil(identity.expiresAt, skewOf(identity.issuer, surroundings)) -
          surroundings.nowMs,
  };
}

function failedStep(token: string, verdict: TokenVerdict): Step {
  const reason = reasonOf(verdict);
  const formFails = formFault(token) !== undefined;
  switch (reason) {
    case "missing":
    case "multiple":
      return "bearer";
    case "too_large":
      return "size";
    case "malformed":
      return formFails ? "form" : "claims";
    case "algorithm":
      return formFails ? "form" : "key";
    case "issuer":
    case "signature":
      return reason;
    case "keys_unusable":
    case "unknown_key":
      return "key";
    default:
      return "claims";
  }
}
