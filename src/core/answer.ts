/** Header section and body of one answer of our own. */
export interface Answer {
  readonly status: number;
  /** Name and value alternating. */
  readonly headers: readonly string[];
  readonly body: string;
  /** The connection ends with this answer. */
  readonly close: boolean;
}
