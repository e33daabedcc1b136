/** Whether tokens of a trusted issuer can be verified now. */
export interface IssuerState {
  readonly issuer: string;
  /** Whether a usable key of the issuer is loaded. */
  readonly usable: boolean;
  /** The state of fetching its keys; undefined if they are read from a file. */
  readonly fetches?: {
    /** When its keys were last fetched, in milliseconds since the epoch; undefined if never. */
    readonly fetchedAt: number | undefined;
    /** Whether the keys are older than they should be, because fetches fail. */
    readonly stale: boolean;
    readonly succeeded: number;
    readonly failed: number;
  };
  /** The number of usable keys that are loaded. */
  readonly keys: number;
  /** When the keys were last read or fetched, in milliseconds since the epoch (wall clock); undefined if never. */
  readonly readAt: number | undefined;
}
