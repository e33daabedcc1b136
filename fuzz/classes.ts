import { answers } from "./generate/answers.ts";
import { bodies } from "./generate/bodies.ts";
import { configurations } from "./generate/configurations.ts";
import { framing } from "./generate/framing.ts";
import { headers } from "./generate/headers.ts";
import { paths } from "./generate/paths.ts";
import { repetition } from "./generate/repetition.ts";
import { tokens } from "./generate/tokens.ts";
import { upgrade } from "./generate/upgrade.ts";
import type { ConfigurationCheck } from "./configuration/check.ts";
import { type FuzzClass, fuzzClass } from "./search/fuzz-class.ts";
import type { MeasuredStage } from "./search/measured-stage.ts";
import type { Stage } from "./search/stage.ts";

/** What is sent to the proxy over raw sockets, many at a time. */
const REQUESTS = { framing, paths, headers, tokens, bodies, upgrade } as const;
/** The same, one at a time, and what each costs is measured. */
const MEASURED = { repetition, answers } as const;

export type ClassName = keyof typeof REQUESTS | keyof typeof MEASURED | "config";

export const CLASS_NAMES: readonly ClassName[] = [
  ...(["framing", "paths", "headers", "tokens", "bodies", "upgrade"] as const),
  ...(["repetition", "answers", "config"] as const),
];

/** Where cases are played. */
interface Stages {
  readonly stage: Stage;
  readonly measured: MeasuredStage;
  readonly check: ConfigurationCheck;
}

export function isClassName(text: string): text is ClassName {
  return CLASS_NAMES.some((name) => name === text);
}

/** Whether its cases are played one at a time. */
export function isMeasured(name: ClassName): name is keyof typeof MEASURED {
  return Object.hasOwn(MEASURED, name);
}

/** Puts a class of generated inputs to what it is meant for. */
export function classOf(name: ClassName, { stage, measured, check }: Stages): FuzzClass {
  if (name === "config") return fuzzClass(configurations, check);
  const { credentials } = stage.subject;
  if (isMeasured(name)) {
    return fuzzClass(MEASURED[name](credentials), {
      play: (value) => measured.play(value),
      playAlone: (value) => measured.playAlone(value),
    });
  }
  return fuzzClass(REQUESTS[name](credentials), {
    play: (value) => stage.play(value),
    playAlone: (value) => stage.playAlone(value),
  });
}
