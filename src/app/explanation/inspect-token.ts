import type { ExplainedToken } from "../../core/explanation.ts";
import { newTrace } from "../../core/request/token-verifier.ts";
import { readableParts } from "../../tokens/verify/token-text.ts";
import type { Clock } from "../../lib/clock.ts";
import { type ExplainerAloneOptions, withOwnGate } from "./dry-run-gate.ts";
import { dateWords, explainVerdict, verifyToken } from "./explained-token.ts";

/** A decoded token without its signature. Its claims are verified only if it is accepted. */
export interface InspectedToken extends Pick<ExplainedToken, "accepted" | "reason" | "steps"> {
  readonly header: Readonly<Record<string, unknown>> | undefined;
  readonly claims: Readonly<Record<string, unknown>> | undefined;
  readonly signatureCharacters: number;
  /** Its dates relative to the local clock, in words. */
  readonly clock: readonly string[];
}

/** Decodes a token without verifying it. */
export function decodeToken(token: string, { now }: Pick<Clock, "now">) {
  const { header, claims } = readableParts(token);
  return {
    accepted: false,
    reason: "not_verified",
    header,
    claims,
    steps: [],
    signatureCharacters: token.split(".")[2]?.length ?? 0,
    clock: dateWords(claims ?? {}, now()),
  } satisfies InspectedToken;
}

/**
 * Opens a gate, and verifies and decodes a token.
 * @throws ConfigError if a file that the configuration names is invalid.
 */
export function inspectToken(
  options: ExplainerAloneOptions,
  token: string,
): Promise<InspectedToken> {
  return withOwnGate(options, async ({ tokens }) => {
    const trace = newTrace();
    const verdict = await verifyToken(token, tokens, trace);
    const { accepted, reason, steps } = explainVerdict(verdict, { ...options, token, trace });
    return {
      ...decodeToken(token, options.clock),
      accepted,
      reason,
      steps: steps.filter(({ step }) => step !== "bearer"),
    };
  });
}
