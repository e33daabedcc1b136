import type { User } from "./user.ts";

/** Signs tokens for users that have logged in. Throws `GateError("keys_unusable")` when there is no key to sign with. */
export interface TokenIssuer {
  issue(user: User): Promise<string>;
}
