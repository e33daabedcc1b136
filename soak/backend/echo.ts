/** The description of a request that a backend returns; a missing header is empty. */
export interface Echo {
  readonly method: string;
  readonly url: string;
  readonly subject: string;
  readonly authorization: string;
  readonly requestId: string;
  readonly bytes: number;
  readonly sha256: string;
}
