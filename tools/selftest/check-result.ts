import type { Answer } from "./answers.ts";

export type Verdict = "PASS" | "FAIL" | "SKIP";

/** The result of one check. */
export interface Result {
  /** For example `framing/te-and-cl`; stable across versions. */
  readonly name: string;
  /** The part of the name before the slash. */
  readonly class: string;
  readonly verdict: Verdict;
  /** What happened, as text for people. Never contains a token. */
  readonly seen: string;
}

export type Judgement = Pick<Result, "verdict" | "seen">;

/** One request as the backend received it. */
export interface Arrival {
  readonly method: string;
  readonly url: string;
  /** Headers and trailers, in the order of arrival. */
  readonly fields: readonly (readonly [name: string, value: string])[];
  /** As latin1; undefined if the backend does not report it. */
  readonly body: string | undefined;
}

/** What was observed during one attempt. */
export interface Observed {
  /** Final responses, in order. */
  readonly answers: readonly Answer[];
  /** `open` if the deployment did not close the connection; `unreachable` if there was none. */
  readonly end: "closed" | "open" | "unreachable";
  /** Over HTTP/2, whether the deployment has reset a stream. */
  readonly reset?: boolean;
  /** All received bytes, as latin1. */
  readonly raw: string;
  /** Why the deployment could not be reached. */
  readonly error?: string;
  /** The requests that reached the backend; undefined if unknown. */
  readonly arrived: readonly Arrival[] | undefined;
}

/** The required outcome of an attempt. */
export interface Expectation {
  /** Whether the attempt must wait until the connection is closed. */
  readonly close: boolean;
  /** @param mark a text that every path of the attempt contains. */
  judge(observed: Observed, mark: string): Judgement;
}

/** Bytes to send on a separate connection. */
export interface Attempt {
  readonly what: string;
  bytes(mark: string): string;
  /**
   * The methods of the requests that a strict parser finds in these bytes, for HTTP/2 on streams 1, 3, 5…; by default
   * one GET.
   */
  readonly methods?: readonly string[];
}

export interface Check {
  readonly name: string;
  /** HTTP/1.1 if omitted. For HTTP/2, the bytes are the frames after the connection preface and SETTINGS. */
  readonly protocol?: "http2";
  readonly tries: readonly Attempt[];
  readonly expectation: Expectation;
  /** Why the check cannot run here. */
  readonly skip?: string | undefined;
}

/** Returns a check with one attempt. */
export function single(
  name: string,
  expectation: Expectation,
  bytes: Attempt["bytes"],
  skip?: string,
): Check {
  const what = name.slice(name.indexOf("/") + 1);
  return { name, tries: [{ what, bytes }], expectation, skip };
}
