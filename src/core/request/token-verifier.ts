import type { RevocationKindName } from "../revocation.ts";
import type { BoundToken } from "./bound-token.ts";
import type { Identity, IdentityClaims } from "./identity.ts";

/** Why a token was refused: for the log and the metrics, never for the client. */
export const TOKEN_REFUSAL_REASONS = [
  "malformed",
  "too_large",
  "algorithm",
  "unknown_key",
  "signature",
  "expired",
  "not_yet_valid",
  "issuer",
  "audience",
  "no_expiry",
  "lifetime",
  "sender_constrained",
  "type",
  "revoked",
  "inactive",
  "unbound",
  "proof_missing",
  "proof_invalid",
  "proof_nonce",
  "proof_replayed",
  "proof_memory",
] as const;
export type TokenRefusalReason = (typeof TOKEN_REFUSAL_REASONS)[number];

/** The steps of a verification, in order. */
export const TOKEN_STEPS = [
  "bearer",
  "size",
  "form",
  "issuer",
  "claims",
  "key",
  "signature",
  "revocation",
  "proof",
] as const;
export type TokenStep = (typeof TOKEN_STEPS)[number];

/** What happens to tokens that are bound to a key of the client: `require` also refuses those that are not. */
export const PROOF_RULES = ["refuse", "accept", "require"] as const;
export type ProofRule = (typeof PROOF_RULES)[number];

/** The conditions that tokens of one issuer must satisfy. */
export interface Expectations {
  /** `aud` must contain at least one of these. `any`: whatever `aud` contains, even if it is missing. */
  readonly audiences: readonly string[] | "any";
  /** The allowed clock skew for the start and end of a token, in milliseconds. */
  readonly skewMs: number;
  /** How far `iat` may lie in the future, in milliseconds. */
  readonly issuedAheadMs: number;
  /** The longest time from `iat` to `exp`, in milliseconds; undefined for no limit. */
  readonly maxLifetimeMs?: number | undefined;
  /**
   * Accepted values of `typ`, in lower case and without `application/`; undefined for the usual ones of access
   * tokens.
   */
  readonly types?: readonly string[] | undefined;
  /** The claims that contain subject and groups. Default: `sub`, `groups`. */
  readonly mapping?: ClaimMapping | undefined;
  /** Default: `refuse`. */
  readonly proof?: ProofRule | undefined;
}

/** The claims that an issuer uses instead of `sub` and `groups`. */
export interface ClaimMapping {
  readonly subject?: string | undefined;
  readonly groups?: string | undefined;
}

/** The claims that the configuration needs: a cached token keeps no others. */
export interface NeededClaims {
  readonly scopes: boolean;
  /** The names as configured, sorted. */
  readonly names: readonly string[];
}

/** Why a request has no verified caller, and the step that refused it. */
export interface TokenRefusal {
  readonly step: TokenStep;
  readonly reason: TokenRefusalReason | "missing" | "multiple" | "keys_unusable";
  /** What is wrong with the form of the token, in words for operators. */
  readonly detail?: string;
  /** For the DPoP challenge: a new nonce, or that the proof is at fault (RFC 9449 §7.1, §9). */
  readonly dpop?: { readonly nonce: string } | "invalid";
  /** The conditions that its claims were checked against. */
  readonly expected?: Expectations;
  /** The caller of a token that is valid except that it was revoked, unless it is bound; and the kind of revocation. */
  readonly revoked?: { readonly caller: Identity | undefined; readonly by: RevocationKindName };
}

/** What a verification does, recorded for `explain`. */
export interface VerificationTrace {
  /** The servers that were queried about the token, in order; none if their earlier answer is cached. */
  readonly queried: QueriedServer[];
  /** Whether the token is verified by other servers instead of a key. */
  remote: boolean;
  /** The step that refused the token, if the endpoint accepts it all the same. */
  pardoned?: TokenStep;
  /** Whether the running proxy was asked about revocation; undefined for a dry run inside it. */
  asked?: AskedRevocation;
}

/** What the running proxy says about the revocation of a token, with its address; or why it was not asked. */
export type AskedRevocation =
  | { readonly by: RevocationKindName | undefined; readonly address: string }
  | { readonly unasked: string };

/** Asks the running proxy whether it revokes a token. Never rejects. */
export type AskRevocation = (caller: IdentityClaims) => Promise<AskedRevocation>;

export interface QueriedServer {
  readonly issuer: string;
  /** What `explain` calls the kind of server. */
  readonly label: string;
  readonly result: "accepted" | "refused" | "unavailable";
}

/** Creates the record of a verification that has not begun. */
export function newTrace(): VerificationTrace {
  return { queried: [], remote: false };
}

/** Returns the refusal of a token that cannot be verified at the moment. */
export function keysUnusable(trace: VerificationTrace | undefined): TokenRefusal {
  return { step: trace?.remote === true ? "signature" : "key", reason: "keys_unusable" };
}

/** The verified caller, or the refusal. */
export type TokenVerdict = Identity | TokenRefusal;
/** The same before the proof of a bound token was checked. */
export type UnprovenVerdict = TokenVerdict | BoundToken;

/** `forged`: the signature was found wrong before, and is not checked again. */
export const TOKEN_CACHE_RESULTS = ["hit", "miss", "forged"] as const;
export type TokenCacheResult = (typeof TOKEN_CACHE_RESULTS)[number];

/** The client of a verification, and facts about it for the metrics. */
export interface VerificationNotes {
  /** The network of the client: questions to other servers are shared fairly among networks. */
  readonly client?: string;
  /** The result of the cache lookup; left unchanged if there was none. */
  tokenCache: TokenCacheResult | undefined;
  /** Undefined unless the verification is to be explained. */
  readonly trace?: VerificationTrace | undefined;
}
