/** Whether keys verify the tokens of an issuer in `tokens.trusted`; otherwise Sallyport asks another server about them. */
export function isKeyed<Each extends object>(each: Each): each is Extract<Each, { jwks: unknown }> {
  return "jwks" in each;
}
