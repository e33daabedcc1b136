/**
 * The prepared half of a two-phase commit: everything that can fail has been done. Call one of the two methods, once.
 */
export interface Change {
  /** Applies the change at once; resolves when its consequences are done, too. Does not fail. */
  commit(): Promise<void>;
  /** Releases what was prepared; the running configuration stays. Does not fail. */
  rollback(): void;
}
