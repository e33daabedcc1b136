import type { Log } from "../core/log.ts";
import type { Clock } from "../lib/clock.ts";
import type { AsymmetricAlgorithm } from "./algorithms.ts";

/** Another issuer whose tokens are accepted too. */
export interface TrustedIssuer {
  /** Compared with `iss` as it is. */
  readonly issuer: string;
  readonly audience: string;
  /** Where its public keys are: an address that is asked, or a file that is watched. */
  readonly jwks: { readonly url: string } | { readonly file: string };
  readonly algorithms: readonly AsymmetricAlgorithm[];
  readonly clockSkewMs: number;
}

/** What a source of trusted keys is made with. */
export interface TrustedKeysContext {
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the keys are others than before. */
  readonly changed: () => void;
  /** Told of a file whenever it has been read again, because it is another or was broken. */
  readonly reloaded?: ((successful: boolean) => void) | undefined;
}
