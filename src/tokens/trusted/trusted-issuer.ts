import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";
import type { AsymmetricAlgorithm } from "../keys/algorithms.ts";

/** Another issuer whose tokens are accepted. */
export interface TrustedIssuer {
  /** Compared with `iss` byte by byte. */
  readonly issuer: string;
  readonly audience: string;
  /** Where its public keys are: a URL to fetch, or a file to watch. */
  readonly jwks: { readonly url: string } | { readonly file: string };
  readonly algorithms: readonly AsymmetricAlgorithm[];
  readonly clockSkewMs: number;
}

/** What a source of trusted keys needs. */
export interface TrustedKeysContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the keys have changed. */
  readonly changed: () => void;
  /** Called whenever a file was read again, because it changed or was broken. */
  readonly reloaded?: ((successful: boolean) => void) | undefined;
}
