import type { User } from "./user.ts";

/** Where an attempt to log in comes from. It decides whose turn it is when many wait, and nothing else. */
export interface AttemptOrigin {
  /** What counts as one client. */
  readonly network: string;
  /** Whether this name has logged in from this network before. */
  readonly familiar: boolean;
  /** How often this network has failed lately, with whatever name; 0 where the name is familiar. */
  readonly failures: number;
}

/**
 * Tells whether a name and a password belong together. A wrong password, an unknown and a disabled user are the
 * ordinary result `undefined`, at equal cost. Throws `GateError("login_queue_full")` when too many wait already.
 */
export interface CredentialCheck {
  check(username: string, password: string, origin: AttemptOrigin): Promise<User | undefined>;
}
