import type { Decision } from "../../server/request/decide.ts";
import { GateError } from "../../core/request/errors.ts";
import type { ExplainedStep, ExplainedToken } from "../../core/explanation.ts";
import { Identity } from "../../core/request/identity.ts";
import type { TokenVerifier } from "../../tokens/verify/verifier.ts";
import {
  keysUnusable,
  newTrace,
  TOKEN_STEPS,
  type TokenStep,
  type TokenVerdict,
  type VerificationTrace,
} from "../../core/request/token-verifier.ts";
import { placeWords } from "../../core/request/token-place.ts";
import { tokenOf } from "../../server/request/request-token.ts";
import { readableParts } from "../../tokens/verify/token-text.ts";
import {
  failDetail,
  passDetail,
  textOf,
  type TokenContext,
  type TokenSettings,
} from "./token-words.ts";

/** Explains the decision about the token of a request; undefined if none was verified. */
export function explainToken(
  { request, endpoint, route, identity, tokenRefusal, trace = newTrace() }: Decision,
  settings: TokenSettings,
): ExplainedToken | undefined {
  const verdict = identity ?? tokenRefusal;
  if (verdict === undefined) return undefined;
  const { tokenFrom } = endpoint ?? route ?? {};
  const found = tokenOf(request, tokenFrom);
  if (!("token" in found)) return explainVerdict(verdict, { ...settings, token: "", trace });
  const explained = explainVerdict(verdict, { ...settings, token: found.token, trace });
  return tokenFrom === undefined ? explained : { ...explained, place: placeWords(found.place) };
}

/** Verifies a token in the same way as for a request. @param trace records the steps. */
export async function verifyToken(
  token: string,
  tokens: Pick<TokenVerifier, "verify">,
  trace?: VerificationTrace,
): Promise<TokenVerdict> {
  try {
    return await tokens.verify(token, undefined, { tokenCache: undefined, trace });
  } catch (error) {
    if (!(error instanceof GateError) || error.code !== "keys_unusable") throw error;
    return keysUnusable(trace);
  }
}

/** Explains the verdict on a token by the steps that led to it. */
export function explainVerdict(verdict: TokenVerdict, context: TokenContext): ExplainedToken {
  const { claims = {} } = readableParts(context.token);
  const accepted = verdict instanceof Identity;
  const { subject, groups, issuer } = accepted
    ? verdict
    : { subject: claims["sub"], groups: [], issuer: claims["iss"] };
  return {
    accepted,
    reason: accepted ? undefined : verdict.reason,
    steps: stepsTo(verdict, context),
    subject: textOf(subject),
    groups,
    issuer: textOf(issuer),
    timeLeftMs: accepted ? verdict.acceptedUntil - context.clock.now() : undefined,
  };
}

/** Returns the steps in the order in which they were taken, then those that were not reached. */
function stepsTo(verdict: TokenVerdict, context: TokenContext): ExplainedStep[] {
  const failed = verdict instanceof Identity ? undefined : verdict;
  const passed = context.trace.passed.filter((step) => step !== failed?.step);
  const unreached = TOKEN_STEPS.filter((step) => step !== failed?.step && !passed.includes(step));
  const row = (step: TokenStep, result: ExplainedStep["result"], detail: string) => ({
    step,
    result,
    detail,
  });
  return [
    ...passed.map((step) => row(step, resultOf(step, context), passDetail(step, context))),
    ...(failed === undefined ? [] : [row(failed.step, "failed", failDetail(failed, context))]),
    ...unreached.map((step) => row(step, "not reached", "")),
  ];
}

/** Returns the result of a step that the token passed. */
function resultOf(step: TokenStep, { trace }: TokenContext): ExplainedStep["result"] {
  const { asked } = trace;
  const unasked = step === "revocation" && asked !== undefined && "unasked" in asked;
  return unasked ? "not checked" : "ok";
}
