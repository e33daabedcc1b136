import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { ClaimMapping } from "../../core/request/token-verifier.ts";

interface Times {
  /** Milliseconds. */
  readonly timeout: number;
  /** How long a yes is remembered, in milliseconds. */
  readonly cache: number;
}

export interface IntrospectionSettings extends Times {
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret: string;
  readonly caFile?: string;
}

export interface TokenReviewSettings extends Times {
  readonly apiServer: string;
  readonly caFile?: string;
  readonly tokenFile?: string;
  /** The audiences that a token must have one of; empty for that of the API server. */
  readonly audiences: readonly string[];
}

/** An issuer whose tokens another server verifies. */
export interface RemoteIssuer {
  /** The name that its callers have as issuer. */
  readonly issuer: string;
  readonly audience?: string | readonly string[] | undefined;
  readonly clockSkewMs: number;
  readonly claims?: ClaimMapping | undefined;
  readonly introspection?: IntrospectionSettings | undefined;
  readonly tokenReview?: TokenReviewSettings | undefined;
}

/** Makes the observer of the check of an issuer. */
export type ObserveCheck = (
  kind: "introspection" | "tokenReview",
  issuer: string,
) => RemoteCheckObserver;
