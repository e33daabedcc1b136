/** The claims of a token as the remote server reports them. */
export type RemoteClaims = Readonly<Record<string, unknown>>;

/** Asks a server about a token. */
export interface RemoteTokenCheck {
  /** @returns undefined for a token that is not active. @throws RemoteError, or the system's error. */
  ask(token: string, signal: AbortSignal): Promise<RemoteClaims | undefined>;
  close(): void;
}
