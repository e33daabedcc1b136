/** Computes whether a password belongs to a hash, away from the thread that serves requests. */
export interface PasswordVerifier {
  /**
   * @param hash a string that `readPasswordHash` accepts.
   * @throws GateError `login_queue_full` when too many wait already, `internal` when it could not be computed.
   */
  verify(password: string, hash: string): Promise<boolean>;
}
