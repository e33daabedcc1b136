/** A complete response of Sallyport's own. */
export interface Answer {
  readonly status: number;
  /** The status in log and metrics, where the client reads it elsewhere. */
  readonly logged?: number;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Whether to close the connection after this response. */
  readonly close: boolean;
}
