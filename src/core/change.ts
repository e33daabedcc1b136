/**
 * The prepared half of a two-phase commit: everything that can fail has been done. Call exactly one of the methods,
 * once.
 */
export interface Change {
  /** Applies the change synchronously; resolves when its consequences are complete, too. Does not fail. */
  commit(): Promise<void>;
  /** Releases the prepared resources; the running configuration stays. Does not fail. */
  rollback(): void;
}
