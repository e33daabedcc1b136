/** What is known of the caller after its token was verified. */
export interface IdentityClaims {
  readonly subject: string;
  readonly groups: readonly string[];
  readonly issuer: string;
  /** `exp` of the token, in seconds since the epoch. */
  readonly expiresAt: number;
  /** When it ends, milliseconds since the epoch: `exp`, and what its issuer's clock may be off. */
  readonly acceptedUntil: number;
}

let mint: (claims: IdentityClaims) => Identity;

/** Proof that a token was verified. Only `mintIdentity` makes one, and only `tokens/` may import that (a lint rule). */
export class Identity implements IdentityClaims {
  readonly #verified = true;
  readonly subject: string;
  readonly groups: readonly string[];
  readonly issuer: string;
  readonly expiresAt: number;
  readonly acceptedUntil: number;
  static {
    mint = (claims) => new Identity(claims);
  }

  private constructor(claims: IdentityClaims) {
    this.subject = claims.subject;
    this.groups = claims.groups;
    this.issuer = claims.issuer;
    this.expiresAt = claims.expiresAt;
    this.acceptedUntil = claims.acceptedUntil;
  }

  /** Whether a value is a genuine identity; look-alikes are not. */
  static is(value: unknown): value is Identity {
    return typeof value === "object" && value !== null && #verified in value;
  }
}

/** Makes an identity from claims whose token has just been verified. */
export function mintIdentity(claims: IdentityClaims): Identity {
  return mint(claims);
}
