import type { AttemptOrigin } from "../core/credential-check.ts";

/** Computes whether a password belongs to a hash, away from the thread that serves requests. */
export interface PasswordVerifier {
  /**
   * @param hash a string that `readPasswordHash` accepts.
   * @param origin decides whose turn it is when many wait, and who has to give way.
   * @throws GateError `login_queue_full` when too many wait, `internal` when it could not be computed.
   */
  verify(password: string, hash: string, origin: AttemptOrigin): Promise<boolean>;
}
