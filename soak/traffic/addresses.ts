/** Returns an address that a client claims behind a trusted proxy (RFC 5737, RFC 2544). */
export function addressOf(number: number): string {
  return `198.18.0.${number % 250}`;
}

/** Returns an address for a client that guesses passwords, which no other client uses. */
export function guesserAddress(number: number): string {
  return `203.0.113.${number % 250}`;
}
