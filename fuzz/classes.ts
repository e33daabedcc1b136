import type { ConfigurationCheck } from "./configuration/check.ts";
import { answers } from "./generate/answers.ts";
import { bodies } from "./generate/bodies.ts";
import { configurations } from "./generate/configurations.ts";
import { alpn, proxied } from "./generate/dials.ts";
import { frames } from "./generate/frames.ts";
import { framing } from "./generate/framing.ts";
import { headers } from "./generate/headers.ts";
import { heads } from "./generate/heads.ts";
import { http2 } from "./generate/http2.ts";
import { paths } from "./generate/paths.ts";
import { repetition } from "./generate/repetition.ts";
import { tokens } from "./generate/tokens.ts";
import { upgrade } from "./generate/upgrade.ts";
import { type FuzzClass, fuzzClass } from "./search/fuzz-class.ts";
import type { MeasuredStage } from "./search/measured-stage.ts";
import type { Stages } from "./search/stages.ts";

/** Classes of requests that are sent over raw sockets, many at a time. */
const REQUESTS = { framing, paths, headers, tokens, bodies, upgrade } as const;
/** The same, over HTTP/2, TLS, and after headers of the PROXY protocol. */
const CONNECTIONS = { http2, frames, alpn, proxied } as const;
/** Classes whose cases are played one at a time, to measure the cost of each. */
const MEASURED = { repetition, heads, answers } as const;

export type ClassName =
  | keyof typeof REQUESTS
  | keyof typeof CONNECTIONS
  | keyof typeof MEASURED
  | "config";

export const CLASS_NAMES: readonly ClassName[] = [
  ...(["framing", "paths", "headers", "tokens", "bodies", "upgrade"] as const),
  ...(["http2", "frames", "alpn", "proxied"] as const),
  ...(["repetition", "heads", "answers", "config"] as const),
];

/** Where cases are played. */
interface Played {
  readonly stages: Stages;
  readonly measured: MeasuredStage;
  readonly check: ConfigurationCheck;
}

export function isClassName(text: string): text is ClassName {
  return CLASS_NAMES.some((name) => name === text);
}

/** Whether the cases of a class are played one at a time. */
export function isMeasured(name: ClassName): name is keyof typeof MEASURED {
  return Object.hasOwn(MEASURED, name);
}

/** Whether some cases of a class need a proxy that speaks TLS. */
export function wantsTls(name: ClassName): name is keyof typeof CONNECTIONS {
  return Object.hasOwn(CONNECTIONS, name);
}

/** Returns a class of generated inputs together with the stage on which its cases are played. */
export function classOf(name: ClassName, { stages, measured, check }: Played): FuzzClass {
  if (name === "config") return fuzzClass(configurations, check);
  const stage = name === "heads" ? measured.ofTime : isMeasured(name) ? measured : stages;
  const cases = { ...REQUESTS, ...CONNECTIONS, ...MEASURED }[name](stages.credentials);
  return fuzzClass(cases, {
    play: (value) => stage.play(value),
    playAlone: (value) => stage.playAlone(value),
  });
}
