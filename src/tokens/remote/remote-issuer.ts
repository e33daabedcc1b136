import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { ClaimMapping } from "../../core/request/token-verifier.ts";
import type { TokenCheckName, TokenCheckSettings } from "./token-check-kinds.ts";

/** An issuer whose tokens another server verifies. */
export interface RemoteIssuer extends TokenCheckSettings {
  /** The issuer in the identity of its callers. */
  readonly issuer: string;
  readonly audience?: string | readonly string[] | undefined;
  readonly clockSkewMs: number;
  readonly claims?: ClaimMapping | undefined;
}

/** Creates the observer for the check of an issuer. */
export type ObserveCheck = (kind: TokenCheckName, issuer: string) => RemoteCheckObserver;
