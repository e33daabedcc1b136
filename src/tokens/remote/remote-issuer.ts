import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { ClaimMapping } from "../../core/request/token-verifier.ts";

interface Times {
  /** Milliseconds. */
  readonly timeout: number;
  /** How long a positive result is cached, in milliseconds. */
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
  /** A token must have one of these audiences. If empty, it must have an audience of the API server. */
  readonly audiences: readonly string[];
}

/** An issuer whose tokens another server verifies. */
export interface RemoteIssuer {
  /** The issuer in the identity of its callers. */
  readonly issuer: string;
  readonly audience?: string | readonly string[] | undefined;
  readonly clockSkewMs: number;
  readonly claims?: ClaimMapping | undefined;
  readonly introspection?: IntrospectionSettings | undefined;
  readonly tokenReview?: TokenReviewSettings | undefined;
}

/** Creates the observer for the check of an issuer. */
export type ObserveCheck = (
  kind: "introspection" | "tokenReview",
  issuer: string,
) => RemoteCheckObserver;
