/** The response of the password policy control to a bind (draft-behera-ldap-password-policy). */
export interface PolicyWord {
  readonly error?: number;
  readonly timeBeforeExpiration?: number;
  readonly graceAuthNsRemaining?: number;
}

/** The errors of draft-behera-ldap-password-policy §6.2, indexed by number. */
const ERRORS = [
  "password_expired",
  "account_locked",
  "change_after_reset",
  "password_mod_not_allowed",
  "must_supply_old_password",
  "insufficient_password_quality",
  "password_too_short",
  "password_too_young",
  "password_in_history",
] as const;

/** Returns the response of a password policy as log fields; undefined if it says nothing. */
export function policyFields(
  word: PolicyWord | undefined,
): Readonly<Record<string, unknown>> | undefined {
  const { error, timeBeforeExpiration: seconds, graceAuthNsRemaining: logins } = word ?? {};
  if (error === undefined && seconds === undefined && logins === undefined) return undefined;
  return {
    ...(error !== undefined && { policy: ERRORS[error] ?? `error ${error}` }),
    ...(seconds !== undefined && { expiresInSeconds: seconds }),
    ...(logins !== undefined && { graceLogins: logins }),
  };
}

/** Reports whether a user with the right password may do nothing but change it. */
export function forbids(word: PolicyWord | undefined): boolean {
  return word?.error !== undefined && ERRORS[word.error] === "change_after_reset";
}
