/** How one request stands against a limit. */
interface RateVerdict {
  readonly allowed: boolean;
  /** How many requests may follow at once. */
  readonly remaining: number;
  /** Milliseconds: for a request that is refused until one is allowed, for another until the whole burst is there again. */
  readonly waitMs: number;
}

/** What a route allows to each of its callers. */
export interface RateLimit {
  /**
   * Who is counted: the subject of the token, or the address of the client (IPv6: its /64). Addresses are counted before
   * the token is looked at, so that tokens that are not accepted count as well.
   */
  readonly by: "subject" | "address";
  /** So many requests in `withinMs` go on for ever; `burst` may come at once. */
  readonly requests: number;
  readonly withinMs: number;
  readonly burst: number;
  /** Counts one request of a caller, unless it is refused. */
  take(key: string): RateVerdict;
}
