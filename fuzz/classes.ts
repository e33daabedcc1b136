import { bodies } from "./generate/bodies.ts";
import { configurations } from "./generate/configurations.ts";
import { framing } from "./generate/framing.ts";
import { headers } from "./generate/headers.ts";
import { paths } from "./generate/paths.ts";
import { tokens } from "./generate/tokens.ts";
import { upgrade } from "./generate/upgrade.ts";
import type { ConfigurationCheck } from "./configuration/check.ts";
import { type FuzzClass, fuzzClass } from "./search/fuzz-class.ts";
import type { Stage } from "./search/stage.ts";

/** What is sent to the proxy over raw sockets. */
const REQUESTS = { framing, paths, headers, tokens, bodies, upgrade } as const;

export type ClassName = keyof typeof REQUESTS | "config";

export const CLASS_NAMES: readonly ClassName[] = [
  ...(["framing", "paths", "headers", "tokens", "bodies", "upgrade", "config"] as const),
];

export function isClassName(text: string): text is ClassName {
  return CLASS_NAMES.some((name) => name === text);
}

/** Puts a class of generated inputs to what it is meant for. */
export function classOf(name: ClassName, stage: Stage, check: ConfigurationCheck): FuzzClass {
  if (name === "config") return fuzzClass(configurations, check);
  return fuzzClass(REQUESTS[name](stage.subject.credentials), {
    play: (value) => stage.play(value),
    playAlone: (value) => stage.playAlone(value),
  });
}
