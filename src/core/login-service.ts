/** Turns a name and a password into a token. Throws `GateError` `bad_credentials`, `login_throttled` or `login_queue_full`. */
export interface LoginService {
  /** @param client the address that the attempt comes from. */
  logIn(username: string, password: string, client: string): Promise<string>;
}
