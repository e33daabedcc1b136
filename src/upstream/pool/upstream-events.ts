/** Told what happens to targets. */
export interface UpstreamEvents {
  /** A target is left out, or used again. */
  targetChanged(upstream: string, target: string, available: boolean, why: string): void;
  /** The name of a target has other addresses than before. */
  targetResolved(upstream: string, target: string, addresses: readonly string[]): void;
  /** The name of a target was looked up. @param fault why no address was found. */
  targetLookedUp(upstream: string, target: string, fault: string | undefined): void;
}
