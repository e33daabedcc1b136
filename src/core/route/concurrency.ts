/** A limit on the requests in flight on a route. */
export interface ConcurrencyLimit {
  readonly requests: number;
  /** What shares one count: all requests of the route, those of one subject, or those of one client network. */
  readonly by: "route" | "subject" | "client";
  /** Counts a request. @returns whether there was room; if so, call `release` when the request has ended. */
  take(key: string): boolean;
  release(key: string): void;
}

/** The verdict of a concurrency limit on one request. */
export interface ConcurrencyVerdict {
  readonly allowed: boolean;
  /** Ends the count of an allowed request. Further calls do nothing. */
  release(): void;
}
