/** The times of fetching keys, in milliseconds. */
export interface FetchTiming {
  /** How long keys are good after a fetch: the bounds of what their server says, and what holds if it says nothing. */
  readonly life: { readonly min: number; readonly usual: number; readonly max: number };
  /** From the first failure to the next fetch; doubled with each further failure, up to `lastRetry`. */
  readonly firstRetry: number;
  readonly lastRetry: number;
  /** Minimum time between two fetches that tokens cause. */
  readonly onDemand: number;
}

export const TIMING: FetchTiming = {
  life: { min: 60_000, usual: 600_000, max: 3_600_000 },
  firstRetry: 1_000,
  lastRetry: 60_000,
  onDemand: 5_000,
};

/** For how long the last good keys stay in use beyond their life while fetches fail, unless it is configured. */
export const STALE_FOR_MS = 86_400_000;

/** How long keys are good whose server says so, or says nothing. */
export function lifeOf(said: number | undefined, { life }: FetchTiming): number {
  return said === undefined ? life.usual : Math.min(Math.max(said, life.min), life.max);
}

/**
 * When to fetch before a life ends: at nine tenths of it, and up to a tenth of that earlier, so that replicas that start
 * together soon fetch at different times.
 */
export function prefetchAfter(lifeMs: number): number {
  return lifeMs * 0.9 * (1 - 0.1 * Math.random());
}

/** When to try again after failures in a row: from half of the time to all of it, for the same reason. */
export function retryAfter(failures: number, { firstRetry, lastRetry }: FetchTiming): number {
  return Math.min(firstRetry * 2 ** (failures - 1), lastRetry) * (1 - 0.5 * Math.random());
}
