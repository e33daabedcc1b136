import type { User } from "./user.ts";

/**
 * Tells whether a name and a password belong together. A wrong password, an unknown and a disabled user are the
 * ordinary result `undefined`, at equal cost. Throws `GateError("login_queue_full")` when too many wait already.
 */
export interface CredentialCheck {
  check(username: string, password: string): Promise<User | undefined>;
}
