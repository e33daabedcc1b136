/** A user whose password was verified. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** The members that a successful login adds to the envelope. Plain data. */
export interface LoginAnswer {
  readonly token: string;
}

/**
 * Exchanges a user name and a correct password for a token. Throws `GateError` `bad_credentials`, `login_throttled`,
 * `login_queue_full` or `users_unavailable`.
 */
export interface LoginService {
  /** @param client the address of the client. @param lifetimeMs of the token; by default that of `tokens.lifetime`. */
  logIn(
    username: string,
    password: string,
    client: string,
    lifetimeMs?: number,
  ): Promise<LoginAnswer>;
}
