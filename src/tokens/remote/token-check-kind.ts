/** A kind of server that verifies tokens: one of the keys of an issuer in `tokens.trusted`. */
export interface TokenCheckKind<Settings> {
  /** What `explain` calls it. */
  readonly label: string;
  /** Whether the server is asked only about tokens that are not JWTs. */
  readonly opaqueOnly: boolean;
  /** Whether its callers are the users of the Kubernetes cluster, whom a SubjectAccessReview can be about. */
  readonly ofCluster: boolean;
  /** What to look at if the server does not answer, for `sallyport doctor`. */
  readonly hint: string;
  open(settings: Settings): RemoteTokenCheck;
  /** Returns the server's URL. */
  url(settings: Settings): string;
}

/** The claims of a token as the remote server reports them. */
export type RemoteClaims = Readonly<Record<string, unknown>>;

/** Asks a server about a token. */
export interface RemoteTokenCheck {
  /** @returns undefined for a token that is not active. @throws RemoteError, or the system's error. */
  ask(token: string, signal: AbortSignal): Promise<RemoteClaims | undefined>;
  close(): void;
}
