import type { Outcome } from "./request/outcome.ts";

type Shown = "id" | "requestId" | "client" | "method" | "host" | "path" | "route";

/**
 * A request that Sallyport itself answered with an error. Texts from the client are truncated to a few hundred
 * characters, and tokens in the path are masked. `method`, `host` and `path` are empty if the request could not be read.
 */
export interface RecentRefusal extends Pick<Outcome, Shown | "status" | "subject" | "protocol"> {
  /** Wall clock, in milliseconds since the epoch. */
  readonly at: number;
  /** The `reason` in the access log. */
  readonly reason: string;
}

/** The events of one minute, counted by result or reason. Events that did not occur are left out. */
export interface RecentMinute {
  /** The start of the minute, in milliseconds since the epoch. */
  readonly at: number;
  readonly logins: Readonly<Record<string, number>>;
  readonly refusals: Readonly<Record<string, number>>;
}

/**
 * How long finished requests of a route took, and how long a target took until the head of its answer: counts of the last
 * minutes, which `quantileOf` reads.
 */
export interface RecentDurationCounts {
  readonly routes: ReadonlyMap<string, readonly number[]>;
  /** By upstream and target, with a space between. */
  readonly targets: ReadonlyMap<string, readonly number[]>;
}

/** The events of the last minutes. */
export interface RecentEvents {
  /** The last minutes, without gaps, the current one last. */
  readonly minutes: readonly RecentMinute[];
  /** The last refusals, the newest first. */
  readonly refusals: readonly RecentRefusal[];
  readonly durations: RecentDurationCounts;
}
