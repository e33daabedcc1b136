import type { Reloaded } from "../../core/reload-result.ts";
import type { Log } from "../../core/log.ts";
import type { ClaimMapping } from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import type { AsymmetricAlgorithm } from "../keys/algorithms.ts";

/** Where to fetch the keys of an issuer, and how long to use them. */
export interface KeySetAddress {
  /** Default: found by discovery at the issuer. */
  readonly url?: string;
  /** PEM file of the authorities that may issue the server's certificate. */
  readonly caFile?: string;
  /** File with a bearer token to send to the server. */
  readonly tokenFile?: string;
  /** How long the last good keys stay in use after their lifetime while fetches fail, in milliseconds. */
  readonly staleFor?: number;
  /** File that keeps a copy for the next start. */
  readonly cacheFile?: string;
}

/** Another issuer whose tokens are accepted. */
export interface TrustedIssuer {
  /** Compared with `iss` byte by byte. */
  readonly issuer: string;
  /** One audience, or a list of which the token must have one. */
  readonly audience: string | readonly string[];
  /** Where its public keys are: an address to fetch them from, or a file to watch. */
  readonly jwks: KeySetAddress | { readonly file: string };
  readonly algorithms: readonly AsymmetricAlgorithm[];
  readonly clockSkewMs: number;
  /** The longest time from `iat` to `exp`, in milliseconds. */
  readonly maxLifetimeMs?: number | undefined;
  /** Accepted values of `typ`; by default those of access tokens. */
  readonly types?: readonly string[] | undefined;
  /** The claims that hold subject and groups. */
  readonly claims?: ClaimMapping | undefined;
}

/** What a source of trusted keys needs. */
export interface TrustedKeysContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the keys have changed. */
  readonly changed: () => void;
  readonly reloaded?: Reloaded | undefined;
  /** Whether copies of fetched keys are written; they are read in any case. Default: no. */
  readonly keepsCopies?: boolean | undefined;
}
