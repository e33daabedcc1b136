/** Something else that is ready to be put in force: all that can fail has been done. One of the two is called, once. */
export interface Change {
  /** Puts it in force at once; resolves when what must follow is done, too. Does not fail. */
  commit(): Promise<void>;
  /** Gives back what was opened for it; what is in force stays. Does not fail. */
  drop(): void;
}
