/** The result of one request for its client. */
export type Got =
  | {
      readonly what: "answer";
      readonly status: number;
      /** The `id` of Sallyport's own envelope; undefined for an answer of a backend. */
      readonly envelopeId: number | undefined;
      /** Why the answer is wrong, whatever its status; undefined if it is right. */
      readonly fault: string | undefined;
    }
  /** The connection ended before the answer was complete. */
  | { readonly what: "broke"; readonly why: string }
  /** The client left on purpose. */
  | { readonly what: "left" };

/** One request as its client saw it. Times are in milliseconds of `performance.now()`. */
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

/** The prefix of all request ids that clients of the soak test send. */
export const OUR_IDS = "soak-";
