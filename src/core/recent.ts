/**
 * A request that Sallyport itself answered with an error. Texts from the client are truncated to a few hundred
 * characters.
 */
export interface RecentRefusal {
  /** Wall clock, in milliseconds since the epoch. */
  readonly at: number;
  readonly id: number;
  readonly requestId: string;
  readonly client: string;
  /** Empty, like `host` and `path`, if the request could not be read. */
  readonly method: string;
  readonly host: string;
  /** Without the query; tokens in it are masked. */
  readonly path: string;
  readonly route: string;
  readonly status: number;
  /** The `reason` in the access log. */
  readonly reason: string;
  readonly subject: string | undefined;
  readonly protocol: string;
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
