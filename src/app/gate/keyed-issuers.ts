/** Whether keys verify the tokens of an issuer in `tokens.trusted`. If not, another server verifies them. */
export function isKeyed<Each extends object>(each: Each): each is Extract<Each, { jwks: unknown }> {
  return "jwks" in each;
}
