/** A limit on the requests of a route that are in flight. */
export interface ConcurrencyLimit {
  readonly requests: number;
  /** What is counted: all requests of the route, those of one subject, or those of one client network. */
  readonly by: "route" | "subject" | "client";
  /** Counts a request. @returns whether there was room; `release` it then. */
  take(key: string): boolean;
  release(key: string): void;
}
