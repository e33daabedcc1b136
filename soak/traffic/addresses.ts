/** Addresses that clients give as their own, behind a proxy that is trusted (RFC 5737, RFC 2544). */
export function addressOf(number: number): string {
  return `198.18.0.${number % 250}`;
}

/** Those of clients that guess passwords: nobody else has one of them. */
export function guesserAddress(number: number): string {
  return `203.0.113.${number % 250}`;
}
