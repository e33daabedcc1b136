/** Only for this host, only over TLS, hidden from scripts, and not sent with what other sites load or post. */
const ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Lax";

/** Returns the field that sets a cookie, as name and value. @param seconds its life; 0 removes it. */
export function cookieField(name: string, value: string, seconds: number): readonly string[] {
  return ["Set-Cookie", `${name}=${value}; Max-Age=${seconds}; ${ATTRIBUTES}`];
}

/** The type of the forms that browsers send, in UTF-8. */
export const FORM_TYPE =
  /^application\/x-www-form-urlencoded\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;
