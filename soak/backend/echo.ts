/** What a backend tells of the request that it got; an absent header is empty. */
export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly subject: string;
  readonly authorization: string;
  readonly requestId: string;
  readonly bytes: number;
  readonly sha256: string;
}
