/** What a client got for one request. */
export type Got =
  | {
      readonly what: "answer";
      readonly status: number;
      /** The `id` of Sallyport's own envelope; undefined for an answer of a backend. */
      readonly envelopeId: number | undefined;
      /** Why the answer is wrong whatever its status; undefined when it is as it should be. */
      readonly fault: string | undefined;
    }
  /** The connection ended before the answer was whole. */
  | { readonly what: "broke"; readonly why: string }
  /** The client itself went away, as it meant to. */
  | { readonly what: "left" };

/** One request as its client saw it. Times in milliseconds of `performance.now()`. */
export interface Asked {
  /** The `X-Request-Id` that it was sent with. */
  readonly id: string;
  /** The kind of traffic. */
  readonly kind: string;
  readonly startedMs: number;
  readonly endedMs: number;
  /** The status codes that are right. */
  readonly right: readonly number[];
  readonly got: Got;
}

/** The beginning of every request id that a client of the soak sends. */
export const OUR_IDS = "soak-";
