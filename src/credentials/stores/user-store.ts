import type { Reloaded } from "../../core/status.ts";
import type { Log } from "../../core/log.ts";
import type { User } from "../../core/login.ts";
import type { Clock } from "../../lib/clock.ts";
import type { FileContent } from "../../lib/files/regular-file.ts";
import type { PasswordVerifier } from "../hashing/hashing-pool.ts";
import type { AttemptOrigin } from "../throttle/login-throttle.ts";

/** The result of verifying a name and a password. For a disabled user, every password is wrong. */
export type VerifyResult =
  | {
      readonly result: "found";
      readonly user: User;
      /** Why the hash should be replaced; undefined if it is strong enough, or if the store does not know. */
      readonly outdated?: string;
    }
  | { readonly result: "wrong" }
  /** This store does not have the name; another one may. */
  | { readonly result: "unknown" }
  /** The store cannot answer, and no other store may answer for this name. */
  | { readonly result: "unavailable" };

/** A store of users. */
export interface UserStore {
  /**
   * Resolves with `unknown` at once; the caller verifies a decoy to take as long as for a known name. Rejects with a
   * `GateError`: `login_queue_full`, or `internal` for an internal error.
   */
  verify(username: string, password: string, origin: AttemptOrigin): Promise<VerifyResult>;
  /** Users that stand in for unknown names, so that the response time reveals nothing. */
  readonly decoys: {
    count(): number;
    /**
     * Costs as much as a wrong password for that user.
     *
     * @param index from 0 to below `count()`.
     */
    verify(index: number, password: string, origin: AttemptOrigin): Promise<unknown>;
  };
  /** Whether the store was unavailable a moment ago, and not available since. Undefined if it always is available. */
  readonly failing?: () => boolean;
}

/** A store that follows changes of its source. */
export interface OpenUserStore extends UserStore {
  /** Takes the content of a new snapshot without waiting for the watch. Never rejects. */
  reload(contentOf: FileReader): Promise<void>;
  /** Lists all users; undefined if the store cannot list them. */
  users?(): Iterable<{ readonly name: string; readonly disabled: boolean }>;
  /** Returns the number of users whose hash should be replaced; undefined if the store cannot list them. */
  readonly outdated?: () => number;
  /** Returns the number of open connections to the source; undefined for a store without connections. */
  readonly connections?: () => number;
  /**
   * Checks whether the store could answer now: network, TLS, credentials, query. Undefined if opening already checks
   * it.
   *
   * @returns the problem in words for an operator, or undefined if there is none. Never rejects.
   */
  readonly examine?: (timeoutMs: number) => Promise<string | undefined>;
  /** Returns doubts about a store that does answer, for `sallyport doctor`. Never rejects. */
  readonly doubts?: (timeoutMs: number) => Promise<readonly StoreDoubt[]>;
  /** Releases everything. Called after the last `verify`. */
  close(): Promise<void>;
}

/** A possible mistake in the settings or the content of a store. */
export interface StoreDoubt {
  readonly doubt: string;
  /** What to do about it. */
  readonly hint: string;
}

/** What every kind of store receives. */
export interface StoreContext {
  readonly contentOf: FileReader;
  readonly log: Log;
  readonly clock: Clock;
  /** Maximum number of logins that wait for a busy store. */
  readonly queue: number;
  /** For stores of password hashes. */
  readonly verifier: PasswordVerifier;
  readonly reloaded?: Reloaded;
}

/** Returns the content of a file that the settings name. Throws `ConfigError` if it could not be read. */
export type FileReader = (path: string) => FileContent;

/** Maximum size of a users file, in bytes: about 50,000 users, which take about 700 MiB of memory during reading. */
export const LARGEST_USERS_FILE = 8 * 1024 ** 2;

/** A kind of store: opens one from its settings in `users`. */
export interface StoreKind<Settings> {
  /** Rejects with a `ConfigError` if the store cannot be used. */
  open(settings: Settings, context: StoreContext): Promise<OpenUserStore>;
  /** What `inspectStore` checks beside the authorities. */
  readonly inspect?: (settings: Settings, contentOf: FileReader) => Promise<number | undefined>;
  /** Returns the connection on which passwords or hashes pass in clear text; undefined if there is none. */
  readonly clearText?: (settings: Settings) => ClearText | undefined;
  /** What an operator can do about a problem that `examine` reports. The first hint that matches applies. */
  readonly hints?: readonly StoreHint[];
}

/** A connection without encryption. */
export interface ClearText {
  readonly url: string;
  /** How to encrypt it. */
  readonly hint: string;
}

/** What an operator can do about problems that match. */
export type StoreHint = readonly [problem: RegExp, hint: string];

/**
 * Returns the names of stores for metrics and the log: the kind, with a number from the second store of that kind on.
 */
export function storeNames(stores: readonly { readonly kind: string }[]): string[] {
  const counts = new Map<string, number>();
  return stores.map(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count === 1 ? kind : `${kind}_${count}`;
  });
}
