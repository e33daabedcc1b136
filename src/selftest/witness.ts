import type { Arrival } from "./check-result.ts";
import type { Answer } from "./answers.ts";
import { pairs, type RecordingBackend } from "./recording-backend.ts";

/** Observes what reaches the backend. */
export interface Witness {
  /** Whether it never observes anything. */
  readonly blind: boolean;
  /** Returns the requests of an attempt that reached the backend; undefined if unknown. */
  arrivals(mark: string, answers: readonly Answer[]): readonly Arrival[] | undefined;
  /** How many times the backend received bytes that are not HTTP. */
  unreadable(): number;
  forget(): void;
}

/** Does not observe the backend. */
export const NO_WITNESS: Witness = {
  blind: true,
  arrivals: () => undefined,
  unreadable: () => 0,
  forget: () => undefined,
};

/** Combines several recording backends, one for each target of one upstream or of several. */
export function recordingWitness(backends: readonly RecordingBackend[]): Witness {
  return {
    blind: false,
    arrivals: (mark) => backends.flatMap((backend) => backend.arrivals(mark)),
    unreadable: () => backends.reduce((sum, backend) => sum + backend.unreadable(), 0),
    forget() {
      for (const backend of backends) backend.forget();
    },
  };
}

/** The deployed backend echoes what it received, in the format of ECHO_SHAPE. */
export const ECHO_WITNESS: Witness = {
  ...NO_WITNESS,
  blind: false,
  arrivals(_mark, answers) {
    const echoes = answers.map(({ body }) => echoOf(body));
    // If a response is neither an error nor an echo, it is unknown what arrived.
    const hidden = answers.some(({ status }, index) => status < 400 && echoes[index] === undefined);
    return hidden ? undefined : echoes.filter((echo) => echo !== undefined);
  },
};

/** A description of the echo, for the help text. */
export const ECHO_SHAPE = `The echo is a JSON object: "method"; "url" or "path"; "headers" (an object of strings or lists of strings)
or "rawHeaders" (a list of alternating names and values); optionally "body" (a string).`;

function echoOf(body: string): Arrival | undefined {
  const echo = objectIn(body);
  if (echo === undefined) return undefined;
  const url = echo["url"] ?? echo["path"];
  const { method, body: echoed } = echo;
  const fields = fieldsOf(echo["rawHeaders"] ?? echo["headers"]);
  if (typeof method !== "string" || typeof url !== "string" || fields === undefined) {
    return undefined;
  }
  return { method, url, fields, body: typeof echoed === "string" ? echoed : undefined };
}

function objectIn(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

function fieldsOf(value: unknown): (readonly [string, string])[] | undefined {
  if (Array.isArray(value)) return pairs(value.map(String));
  if (typeof value !== "object" || value === null) return undefined;
  return Object.entries(value).flatMap(([name, values]) =>
    [values].flat().map((each) => [name, String(each)] as const),
  );
}
