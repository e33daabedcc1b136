/** Whether tokens of a trusted issuer can be verified now. */
export interface IssuerState {
  readonly issuer: string;
  /** Whether a usable key of the issuer is loaded. */
  readonly usable: boolean;
  /** What is known of fetching its keys; undefined if they are read from a file. */
  readonly fetches?: {
    /** When its keys were last fetched, in milliseconds since the epoch; undefined if never. */
    readonly fetchedAt: number | undefined;
    /** Whether they are older than they should be, because fetches fail. */
    readonly stale: boolean;
    readonly succeeded: number;
    readonly failed: number;
  };
  /** How many usable keys are loaded. */
  readonly keys: number;
  /** When they were last read or fetched, wall clock in milliseconds since the epoch; undefined if never. */
  readonly readAt: number | undefined;
}
