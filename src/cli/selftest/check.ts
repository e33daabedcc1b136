import type { Answer } from "./answers.ts";

export type Verdict = "PASS" | "FAIL" | "SKIP";

/** What came of one check. */
export interface Result {
  /** Stays the same from version to version: `framing/te-and-cl`. */
  readonly name: string;
  /** The part of the name before the stroke. */
  readonly class: string;
  readonly verdict: Verdict;
  /** For a person. Never holds a token. */
  readonly seen: string;
}

export type Sight = Pick<Result, "verdict" | "seen">;

/** One request as the backend got it. */
export interface Arrival {
  readonly method: string;
  readonly url: string;
  /** Headers and trailers, as they arrived. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** As latin1; undefined when the backend does not tell. */
  readonly body: string | undefined;
}

/** What could be seen of one try. */
export interface Observed {
  /** Final answers, in order. */
  readonly answers: readonly Answer[];
  /** `open` when the deployment had not closed the connection. */
  readonly end: "closed" | "open" | "unreachable";
  /** Everything that came back, as latin1. */
  readonly raw: string;
  /** Why the deployment could not be reached. */
  readonly trouble?: string;
  /** What reached the backend; undefined when nobody tells. */
  readonly arrived: readonly Arrival[] | undefined;
}

/** What must come of a try. */
export interface Expectation {
  /** Whether it is about the end of the connection, which is then waited for. */
  readonly close: boolean;
  /** @param mark stands in every address of the try. */
  judge(observed: Observed, mark: string): Sight;
}

/** Bytes to send on a connection of their own. */
export interface Try {
  readonly what: string;
  bytes(mark: string): string;
  /** Methods of the requests that these bytes are to a strict reader; one GET when left out. */
  readonly methods?: readonly string[];
}

export interface Check {
  readonly name: string;
  readonly tries: readonly Try[];
  readonly expectation: Expectation;
  /** Why it cannot be made here. */
  readonly skip?: string | undefined;
}
