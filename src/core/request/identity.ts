/** A value that a claim can be compared with. */
export type ClaimScalar = string | number | boolean;
/** The stored value of a claim: one value, or the values of a list. Objects are not stored. */
export type ClaimValue = ClaimScalar | readonly ClaimScalar[];

/** What a token is bound to (RFC 7800): each in base64url, and at least one of them. */
export interface Confirmation {
  /** The SHA-256 thumbprint (RFC 7638) of the key that signs DPoP proofs (RFC 9449 §6.1). */
  readonly jkt: string | undefined;
  /** The SHA-256 of the client's certificate (RFC 8705 §3.1). */
  readonly x5t: string | undefined;
}

/** The claims of a verified token. */
export interface IdentityClaims {
  readonly subject: string;
  readonly groups: readonly string[];
  readonly issuer: string;
  /** `exp` of the token, in seconds since the epoch. */
  readonly expiresAt: number;
  /** When the identity ends, in milliseconds since the epoch: `exp` plus the allowed clock skew of the issuer. */
  readonly acceptedUntil: number;
  /** `jti` of the token. */
  readonly tokenId?: string | undefined;
  /** `iat` of the token, in seconds since the epoch. */
  readonly issuedAt?: number | undefined;
  /** The scopes of the token (RFC 6749 §3.3); stored only if the configuration needs them. */
  readonly scopes?: readonly string[] | undefined;
  /** The claims that the configuration needs, by the name that it uses. Claims that the token lacks are missing. */
  readonly claims?: ReadonlyMap<string, ClaimValue> | undefined;
  /** What the token is bound to; undefined for a bearer token. */
  readonly bound?: Confirmation | undefined;
}

/** Creates an identity from the claims of a token that was just verified. Only `tokens/` may import it (a lint rule). */
export let mintIdentity: (claims: IdentityClaims) => Identity;

/** Proof that a token was verified. Only `mintIdentity` creates one. */
export class Identity implements IdentityClaims {
  readonly #verified = true;
  readonly subject: string;
  readonly groups: readonly string[];
  readonly issuer: string;
  readonly expiresAt: number;
  readonly acceptedUntil: number;
  readonly tokenId: string | undefined;
  readonly issuedAt: number | undefined;
  readonly scopes: readonly string[] | undefined;
  readonly claims: ReadonlyMap<string, ClaimValue> | undefined;
  readonly bound: Confirmation | undefined;
  static {
    mintIdentity = (claims) => new Identity(claims);
  }

  private constructor(claims: IdentityClaims) {
    this.subject = claims.subject;
    this.groups = claims.groups;
    this.issuer = claims.issuer;
    this.expiresAt = claims.expiresAt;
    this.acceptedUntil = claims.acceptedUntil;
    this.tokenId = claims.tokenId;
    this.issuedAt = claims.issuedAt;
    this.scopes = claims.scopes;
    this.claims = claims.claims;
    this.bound = claims.bound;
  }

  /** Whether a value is a genuine identity rather than a look-alike. */
  static is(value: unknown): value is Identity {
    return typeof value === "object" && value !== null && #verified in value;
  }
}

/** Returns the caller of a bound token whose proof was just checked. Only `tokens/proofs` may import it (a lint rule). */
export let unbind: (token: BoundToken) => Identity;

/** A verified token whose caller must still prove to have its key. It is no identity: only `unbind` makes it one. */
export class BoundToken {
  readonly claims: IdentityClaims;
  readonly bound: Confirmation;
  /** The SHA-256 of the token in base64url: the `ath` of its proofs (RFC 9449 §4.2). */
  readonly digest: string;
  readonly #identity: Identity;
  static {
    unbind = (token) => token.#identity;
  }

  constructor(claims: IdentityClaims, bound: Confirmation, digest: string) {
    this.claims = claims;
    this.bound = bound;
    this.digest = digest;
    this.#identity = mintIdentity(claims);
  }
}
