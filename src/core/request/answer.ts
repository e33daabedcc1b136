/** A complete response of Sallyport's own. */
export interface Answer {
  readonly status: number;
  /** The status in the log and the metrics, if the client gets it somewhere other than in the status line. */
  readonly logged?: number;
  /** Names and values, alternating. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Whether to close the connection after this response. */
  readonly close: boolean;
}
