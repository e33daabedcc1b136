import type { Log } from "../core/log.ts";
import type { Clock } from "../lib/clock.ts";
import type { KeySource } from "./key-set.ts";
import type { TrustedIssuer } from "./trusted-issuer.ts";
import { openTrustedKeyAddress } from "./trusted-key-address.ts";
import { openTrustedKeyFile } from "./trusted-key-file.ts";

/** Told of one file of keys. */
interface KeyFileState {
  /** Whether it could be read again. */
  reloaded(successful: boolean): void;
  /** It is not read any more. */
  gone(): void;
}

export interface TrustedKeysOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Makes what is told of a further file. */
  readonly stateOf?: () => KeyFileState;
}

/** A source, and what its users want to be called at when its keys are others. */
interface SharedSource {
  readonly source: KeySource;
  readonly users: Set<() => void>;
}

/**
 * Where the keys of trusted issuers come from. Whoever wants the same keys shares one source: so a change of the
 * configuration does not lose what an address gave that is down by now.
 */
export class TrustedKeys {
  readonly #options: TrustedKeysOptions;
  readonly #shared = new Map<string, SharedSource>();

  constructor(options: TrustedKeysOptions) {
    this.#options = options;
  }

  /**
   * The keys of an issuer, until it is closed. Throws `ConfigError` when their file is unusable.
   * @param changed called when the keys are others than before.
   */
  open(trusted: TrustedIssuer, changed: () => void): KeySource {
    const { issuer, jwks, algorithms } = trusted;
    const name = JSON.stringify([issuer, jwks, algorithms]);
    const { source, users } = this.#shared.get(name) ?? this.#begin(name, trusted);
    users.add(changed);
    return {
      current: () => source.current(),
      refresh: () => source.refresh(),
      close: () => {
        if (!users.delete(changed) || users.size > 0) return;
        source.close();
        this.#shared.delete(name);
      },
    };
  }

  /** Asks all addresses for their keys, but those that were asked within the last 30 seconds. */
  refresh(): void {
    for (const { source } of this.#shared.values()) void source.refresh();
  }

  #begin(name: string, trusted: TrustedIssuer): SharedSource {
    const users = new Set<() => void>();
    const changed = (): void => {
      for (const tell of users) tell();
    };
    const shared = { source: this.#sourceOf(trusted, changed), users };
    this.#shared.set(name, shared);
    return shared;
  }

  #sourceOf(trusted: TrustedIssuer, changed: () => void): KeySource {
    const { clock, log, stateOf } = this.#options;
    const { jwks } = trusted;
    if ("url" in jwks) return openTrustedKeyAddress(jwks.url, trusted, { clock, log, changed });
    const state = stateOf?.();
    const reloaded = state?.reloaded;
    const source = openTrustedKeyFile(jwks.file, trusted, { clock, log, changed, reloaded });
    return {
      ...source,
      close() {
        source.close();
        state?.gone();
      },
    };
  }
}
