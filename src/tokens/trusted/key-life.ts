/** The times of fetching keys, in milliseconds. */
export interface FetchTiming {
  /**
   * How long keys are fresh after a fetch: the bounds for the lifetime that the server states, and the default if it
   * states none.
   */
  readonly life: { readonly min: number; readonly usual: number; readonly max: number };
  /** Delay after the first failure. Doubles with each further failure, up to `lastRetry`. */
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

/** Default time for which the last good keys stay in use after their lifetime while fetches fail. */
export const STALE_FOR_MS = 86_400_000;

/** Returns the lifetime of keys, given the lifetime that their server states; undefined if it states none. */
export function lifeOf(said: number | undefined, { life }: FetchTiming): number {
  return said === undefined ? life.usual : Math.min(Math.max(said, life.min), life.max);
}

/**
 * Returns the delay until the next fetch: nine tenths of the lifetime, minus up to a tenth of that at random. So
 * replicas that start together soon fetch at different times.
 */
export function prefetchAfter(lifeMs: number): number {
  return lifeMs * 0.9 * (1 - 0.1 * Math.random());
}

/**
 * Returns the delay until the next attempt after consecutive failures: a random part of the backoff, from half of it to
 * all of it, for the same reason.
 */
export function retryAfter(failures: number, { firstRetry, lastRetry }: FetchTiming): number {
  return Math.min(firstRetry * 2 ** (failures - 1), lastRetry) * (1 - 0.5 * Math.random());
}
