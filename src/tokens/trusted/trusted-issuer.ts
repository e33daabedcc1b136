import type { Log } from "../../core/log.ts";
import type { ClaimMapping } from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import type { AsymmetricAlgorithm } from "../keys/algorithms.ts";

/** Where the keys of an issuer are fetched from, and how long they last. */
export interface KeySetAddress {
  /** By default, discovery at the issuer finds it. */
  readonly url?: string;
  /** PEM of the authorities that its certificate may come from. */
  readonly caFile?: string;
  /** A bearer token to show to it. */
  readonly tokenFile?: string;
  /** How long the last good keys stay in use after their life, while fetches fail; milliseconds. */
  readonly staleFor?: number;
  /** Keeps a copy for the next start. */
  readonly cacheFile?: string;
}

/** Another issuer whose tokens are accepted. */
export interface TrustedIssuer {
  /** Compared with `iss` byte by byte. */
  readonly issuer: string;
  /** One, or any of several. */
  readonly audience: string | readonly string[];
  /** Where its public keys are: an address to fetch them from, or a file to watch. */
  readonly jwks: KeySetAddress | { readonly file: string };
  readonly algorithms: readonly AsymmetricAlgorithm[];
  readonly clockSkewMs: number;
  /** The longest time from `iat` to `exp`, in milliseconds. */
  readonly maxLifetimeMs?: number | undefined;
  /** Accepted values of `typ`; by default those of any access token. */
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
  /** Called whenever a file was read again, because it changed or was broken. */
  readonly reloaded?: ((successful: boolean) => void) | undefined;
  /** Whether copies of fetched keys are written; they are read in any case. Default: no. */
  readonly keepsCopies?: boolean | undefined;
}
