/** The verdict of a rate limit on one request. */
export interface RateVerdict {
  readonly allowed: boolean;
  /** The number of further requests that may follow immediately. */
  readonly remaining: number;
  /**
   * In milliseconds: after a refusal, the time until the next request is allowed; otherwise until the full burst is
   * available.
   */
  readonly waitMs: number;
}

/** The rate limit that a route sets for each caller. */
export interface RateLimit {
  /**
   * The key: the subject of the token (without one, on a route where it is optional, the address), or the address of the
   * client (IPv6: its /64). With `address`, requests are counted before the token is examined, so that requests with invalid
   * tokens count, too.
   */
  readonly by: "subject" | "address";
  /** Sustained rate: requests allowed per `withinMs`. `burst` is how many may arrive at once. */
  readonly requests: number;
  readonly withinMs: number;
  readonly burst: number;
  /** Counts a request of a caller, unless the limit refuses it. */
  take(key: string): RateVerdict;
}
