import type { Identity, IdentityClaims } from "./identity.ts";

/** What a token is bound to (RFC 7800): each in base64url, and at least one of them. */
export interface Confirmation {
  /** The SHA-256 thumbprint (RFC 7638) of the key that signs DPoP proofs (RFC 9449 §6.1). */
  readonly jkt: string | undefined;
  /** The SHA-256 of the client's certificate (RFC 8705 §3.1). */
  readonly x5t: string | undefined;
}

/** Returns the caller of a bound token whose proof was just checked. Only `tokens/proofs/proofs.ts` may import it (a lint rule). */
export let unbind: (token: BoundToken) => Identity;

/**
 * A verified token whose caller must still prove to have what it is bound to. It is no identity: only `unbind` makes it one, so that
 * code that forgets the proof has no caller.
 */
export class BoundToken {
  readonly claims: IdentityClaims;
  readonly bound: Confirmation;
  /** The SHA-256 of the token in base64url: the `ath` of its proofs (RFC 9449 §4.2). */
  readonly digest: string;
  readonly #caller: Identity;
  static {
    unbind = (token) => token.#caller;
  }

  /** @param claims those of the caller, as plain data. */
  constructor(claims: IdentityClaims, bound: Confirmation, digest: string, caller: Identity) {
    this.claims = claims;
    this.bound = bound;
    this.digest = digest;
    this.#caller = caller;
  }
}
