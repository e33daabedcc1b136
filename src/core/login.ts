/** A user whose password was verified. */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
}

/** Signs tokens for users who have logged in. Throws `GateError("keys_unusable")` without a usable key. */
export interface TokenIssuer {
  issue(user: User): Promise<string>;
}

/** The response to a successful login: plain data, members of the envelope. */
export interface LoginAnswer {
  readonly token: string;
}

/**
 * Exchanges the right password for a token. Throws `GateError` `bad_credentials`, `login_throttled`,
 * `login_queue_full` or `users_unavailable`.
 */
export interface LoginService {
  /** @param client the address of the client. */
  logIn(username: string, password: string, client: string): Promise<LoginAnswer>;
}
