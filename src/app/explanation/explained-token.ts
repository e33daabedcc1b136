import type { Decision } from "../../core/request/decision.ts";
import { GateError } from "../../core/request/errors.ts";
import type { ExplainedStep, ExplainedToken } from "../../core/explanation.ts";
import { Identity } from "../../core/request/identity.ts";
import {
  TOKEN_STEPS,
  type TokenVerdict,
  type TokenVerifier,
} from "../../core/request/token-verifier.ts";
import { placeWords } from "../../core/request/token-place.ts";
import { tokenOf } from "../../server/request/request-token.ts";
import { readableParts } from "../../tokens/verify/token-text.ts";
import { failDetail, passDetail, textOf, type TokenContext } from "./token-words.ts";

/** Explains the decision about the token of a request; undefined if none was verified. */
export function explainToken(
  { request, route, identity, tokenRefusal: tokenFault }: Decision,
  context: TokenContext,
): ExplainedToken | undefined {
  const verdict = identity ?? tokenFault;
  if (verdict === undefined) return undefined;
  const found = tokenOf(request, route);
  if (!("token" in found)) return explainVerdict("", verdict, context);
  const explained = explainVerdict(found.token, verdict, context);
  return route?.tokenFrom === undefined
    ? explained
    : { ...explained, place: placeWords(found.place) };
}

/** Verifies a token in the same way as for a request. */
export async function verifyToken(token: string, tokens: TokenVerifier): Promise<TokenVerdict> {
  try {
    return await tokens.verify(token);
  } catch (error) {
    if (!(error instanceof GateError) || error.code !== "keys_unusable") throw error;
    return { step: "key", reason: error.code };
  }
}

/** Explains the verdict of the verifier as the steps that led to it. */
export function explainVerdict(
  token: string,
  verdict: TokenVerdict,
  context: TokenContext,
): ExplainedToken {
  const { claims = {} } = readableParts(token);
  const accepted = verdict instanceof Identity;
  const reached = accepted ? TOKEN_STEPS.length : TOKEN_STEPS.indexOf(verdict.step);
  const by = accepted ? verdict.issuer : undefined;
  const steps = TOKEN_STEPS.map((step, index): ExplainedStep => {
    if (index > reached) return { step, result: "not reached", detail: "" };
    return accepted || index < reached
      ? { step, result: "ok", detail: passDetail(step, token, context, by) }
      : { step, result: "failed", detail: failDetail(verdict, token, context) };
  });
  const { subject, groups, issuer } = accepted
    ? verdict
    : { subject: claims["sub"], groups: [], issuer: claims["iss"] };
  return {
    ...{ accepted, reason: accepted ? undefined : verdict.reason, steps },
    ...{ subject: textOf(subject), groups, issuer: textOf(issuer) },
    timeLeftMs: accepted ? verdict.acceptedUntil - context.clock.now() : undefined,
  };
}
