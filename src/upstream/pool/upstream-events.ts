/** Receives the events of targets. */
export interface UpstreamEvents {
  /** A target is left out, or used again. */
  targetChanged(upstream: string, target: string, available: boolean, why: string): void;
  /** The addresses of a target's name have changed. */
  targetResolved(upstream: string, target: string, addresses: readonly string[]): void;
  /** The name of a target was looked up. @param fault why no address was found. */
  targetLookedUp(upstream: string, target: string, fault: string | undefined): void;
}
