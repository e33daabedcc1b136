import type { IssuerState } from "../../core/issuer-state.ts";
import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";
import { Leased } from "../../lib/async/leased.ts";
import type { KeySource } from "../keys/key-set.ts";
import type { TrustedIssuer } from "./trusted-issuer.ts";
import { TrustedKeyAddress } from "./trusted-key-address.ts";
import { openTrustedKeyFile } from "./trusted-key-file.ts";

/** Observes one key file. */
interface KeyFileState {
  /** Called after each reading, with whether it succeeded. */
  reloaded(successful: boolean): void;
  /** Called when the file is no longer read. */
  removed(): void;
}

export interface TrustedKeysOptions {
  readonly clock: Clock;
  readonly log: Log;
  /** Creates the observer of a further file. */
  readonly stateOf?: () => KeyFileState;
  /** Whether copies of fetched keys are written. */
  readonly keepsCopies?: boolean | undefined;
  /** Called with all issuers when their keys or the issuers themselves have changed. */
  readonly issuersChanged?: ((states: readonly IssuerState[]) => void) | undefined;
}

/** A source, and the callbacks of its users for when the keys have changed. */
interface SharedSource {
  readonly issuer: string;
  /** Leased by each user. */
  readonly source: Leased<KeySource>;
  readonly users: Set<() => void>;
}

/**
 * The sources of the keys of trusted issuers. Users of the same keys share one source, so that a new configuration
 * keeps keys whose address is down now.
 */
export class TrustedKeys {
  readonly #options: TrustedKeysOptions;
  readonly #shared = new Map<string, SharedSource>();

  constructor(options: TrustedKeysOptions) {
    this.#options = options;
  }

  /**
   * Opens the keys of an issuer until they are closed. Throws `ConfigError` if their file is unusable.
   *
   * @param changed called when the keys have changed.
   */
  open(trusted: TrustedIssuer, changed: () => void): KeySource {
    const { issuer, jwks, algorithms } = trusted;
    const name = JSON.stringify([issuer, jwks, algorithms]);
    const before = this.#shared.get(name);
    before?.source.acquire();
    const { source, users } = before ?? this.#begin(name, trusted);
    users.add(changed);
    return {
      current: () => source.value.current(),
      refresh: (kid) => source.value.refresh(kid),
      close: () => {
        if (users.delete(changed)) source.release();
      },
    };
  }

  /** Fetches the keys of all addresses again, except those that a token or a reload fetched within the last 5 seconds. */
  refresh(): void {
    const tooMany = (): void => undefined; // they wait for the same answer
    for (const { source } of this.#shared.values()) void source.value.refresh().catch(tooMany);
  }

  /** All issuers that are trusted now. */
  states(): IssuerState[] {
    return [...this.#shared.values()].map(({ issuer, source: { value: source } }) => {
      const keys = source.current()?.length ?? 0;
      return {
        ...{ issuer, usable: keys > 0, keys, readAt: source.readAt?.() },
        ...(source instanceof TrustedKeyAddress ? { fetches: source.fetches } : {}),
      };
    });
  }

  #notify(): void {
    this.#options.issuersChanged?.(this.states());
  }

  #begin(name: string, trusted: TrustedIssuer): SharedSource {
    const users = new Set<() => void>();
    const changed = (): void => {
      for (const notify of users) notify();
      this.#notify();
    };
    const { issuer } = trusted;
    const source = new Leased(this.#sourceOf(trusted, changed), (done) => {
      done.close();
      this.#shared.delete(name);
      this.#notify();
    });
    const shared = { issuer, source, users };
    this.#shared.set(name, shared);
    this.#notify();
    return shared;
  }

  #sourceOf(trusted: TrustedIssuer, changed: () => void): KeySource {
    const { clock, log, stateOf, keepsCopies } = this.#options;
    const { jwks } = trusted;
    if (!("file" in jwks)) {
      return new TrustedKeyAddress(jwks, trusted, { clock, log, changed, keepsCopies });
    }
    const state = stateOf?.();
    const reloaded = state?.reloaded;
    const source = openTrustedKeyFile(jwks.file, trusted, { clock, log, changed, reloaded });
    return {
      ...source,
      close() {
        source.close();
        state?.removed();
      },
    };
  }
}
