import type { Confirmation } from "./bound-token.ts";

/** A value that a claim can be compared with. */
export type ClaimScalar = string | number | boolean;
/** The stored value of a claim: one value, or the values of a list. Objects are not stored. */
export type ClaimValue = ClaimScalar | readonly ClaimScalar[];

/** The issuer in the identity of callers with a client certificate. */
export const CERTIFICATE_ISSUER = "certificate";

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
