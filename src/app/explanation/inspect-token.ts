import type { ExplainedToken } from "../../core/explanation.ts";
import { openGate } from "../gate.ts";
import { readableParts } from "../../tokens/token-faults.ts";
import type { ExplainerOptions } from "./explain.ts";
import { NO_LOGINS, SILENT_LOG, SILENT_OBSERVER } from "./silent.ts";
import { explainToken, verdictOn } from "./token.ts";
import { timesOf } from "./token-words.ts";

/** A token taken apart, without its signature. Nothing of it is proven unless it is accepted. */
export interface InspectedToken extends Pick<ExplainedToken, "accepted" | "reason" | "steps"> {
  readonly header: Readonly<Record<string, unknown>> | undefined;
  readonly claims: Readonly<Record<string, unknown>> | undefined;
  readonly signatureCharacters: number;
  /** Its dates against the clock here, in words. */
  readonly clock: readonly string[];
}

/** Asks the verifier of a gate of its own whether a token is accepted. @throws ConfigError for a broken file. */
export async function inspectToken(
  { configuration, keys, clock }: ExplainerOptions,
  token: string,
): Promise<InspectedToken> {
  const { gate, close } = openGate({
    ...{ configuration, keys, clock, version: "0.0.0" },
    ...{ logins: NO_LOGINS, log: SILENT_LOG, observer: SILENT_OBSERVER },
  });
  try {
    const verdict = await verdictOn(token, gate.tokens);
    const nowMs = clock.now();
    const surroundings = { configuration, keys, nowMs };
    const { accepted, reason, steps } = explainToken(token, verdict, surroundings);
    const { header, claims } = readableParts(token);
    return {
      ...{ accepted, reason, header, claims },
      steps: steps.filter(({ step }) => step !== "bearer"),
      signatureCharacters: token.split(".")[2]?.length ?? 0,
      clock: timesOf(claims ?? {}, nowMs),
    };
  } finally {
    await close();
  }
}
