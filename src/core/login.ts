/** A user whose password was verified, or for whom a provider has vouched. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** The members that a successful login adds to the envelope. Plain data. */
export interface LoginAnswer {
  readonly token: string;
}

/** How long a person may take at a provider, in seconds. */
export const SIGN_IN_SECONDS = 600;

/** A sign-in that is about to begin at an OpenID provider. */
export interface SignInBeginning {
  /** The address to which the provider sends the browser back. */
  readonly returnTo: string;
  /** Where the person wants to go then. */
  readonly to: string;
  /** Begins what the provider sends back as `state` (RFC 6749 §4.1.1): where the browser keeps this sign-in. */
  readonly slot: string;
}

/** A sign-in that has begun. */
export interface BegunSignIn {
  /** Where the browser goes. */
  readonly location: string;
  /** What the browser keeps meanwhile, encrypted: any replica can finish the sign-in with it. */
  readonly sealed: string;
}

/** What a browser brings back from an OpenID provider. */
export interface ReturnedSignIn {
  /** The address to which it came, with the parameters of the provider. */
  readonly url: string;
  /** What it has kept; undefined if it has lost it. */
  readonly sealed: string | undefined;
  /** The network of the client. */
  readonly network: string;
}

export interface FinishedSignIn extends LoginAnswer {
  /** Where the person wanted to go. */
  readonly to: string;
}

/**
 * Exchanges a user name and a correct password for a token. Throws `GateError` `bad_credentials`, `login_throttled`,
 * `login_queue_full` or `users_unavailable`.
 */
export interface LoginService {
  /**
   * @param client the address of the client.
   * @param lifetimeMs of the token; by default that of `tokens.lifetime`.
   * @param jkt the thumbprint of the key to which the token is bound (RFC 9449 §6.1); by default none.
   */
  logIn(
    username: string,
    password: string,
    client: string,
    lifetimeMs?: number,
    jkt?: string,
  ): Promise<LoginAnswer>;
}

/** People who sign in at OpenID providers. The main thread asks the providers, for all threads. */
export interface SignIns {
  /** Sends a person to a provider. @throws GateError `provider_unavailable`. */
  beginSignIn(provider: string, beginning: SignInBeginning): Promise<BegunSignIn>;

  /** @throws GateError `sign_in_failed`, `forbidden` or `provider_unavailable`. */
  finishSignIn(provider: string, returned: ReturnedSignIn): Promise<FinishedSignIn>;

  /**
   * Returns the address at which a person leaves the provider, too (OpenID Connect RP-Initiated Logout 1.0); undefined if there
   * is none, or if it cannot be known at the moment.
   */
  signOutUrl(provider: string, returnTo: string): Promise<string | undefined>;

  /**
   * Ends the sessions that a provider names (OpenID Connect Back-Channel Logout 1.0 §2.6). Resolves when all threads have ended them.
   *
   * @throws GateError `sign_in_failed` if the token is not valid, or `provider_unavailable`.
   */
  endSessions(provider: string, logoutToken: string): Promise<void>;
}
