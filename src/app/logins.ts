import type { Configuration } from "../config/schema.ts";
import type { Change } from "../core/change.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import { createCredentialCheck } from "../credentials/credential-check.ts";
import { type FileUserStore, openFileUserStore } from "../credentials/file-user-store.ts";
import { createHashingPool, type HashingPool } from "../credentials/hashing-pool.ts";
import {
  type ChangeableThrottle,
  createLoginThrottle,
  type LoginThrottleLimits,
} from "../credentials/login-throttle.ts";
import type { Clock } from "../lib/clock.ts";
import { keep, keepAwaited, type Kept } from "../lib/kept.ts";
import { createLoginService } from "../server/login-service.ts";
import { createTokenIssuer } from "../tokens/issuer.ts";
import type { SigningKeys } from "../tokens/signing-keys.ts";
import type { ReloadState, ReloadStates } from "./reload-states.ts";

export interface LoginsOptions {
  readonly configuration: Configuration;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Pick<Observer, "tokenIssued">;
  /** Where each users file tells whether it could be read again. */
  readonly reloads: ReloadStates;
}

/** Everything that logs people in: once in a process, whatever the number of threads. */
export interface Logins {
  readonly service: LoginService;
  /**
   * Prepares another configuration; what was counted of failed attempts goes on counting, and logins under way end under the
   * configuration that they began with. @throws ConfigError when a users file is broken.
   */
  prepare(configuration: Configuration): Promise<Change>;
  /** How many wait for their password to be hashed. */
  readonly waiting: () => number;
  /** Makes ready what the first login would wait for. */
  start(): void;
  close(): Promise<void>;
}

/** A users file, and whether it is broken. */
interface WatchedUsers {
  readonly store: FileUserStore;
  readonly state: ReloadState;
}

/** What logs in under one configuration. */
interface LoginParts {
  readonly users: Kept<readonly WatchedUsers[]>;
  readonly hashing: Kept<HashingPool>;
  /** One for as long as the process runs. */
  readonly throttle: ChangeableThrottle;
  readonly service: Kept<LoginService>;
}

/** @throws ConfigError when a users file is broken. */
export async function openLogins(options: LoginsOptions): Promise<Logins> {
  let parts = await openParts(options, undefined);
  warnOfNobody(options);
  /** The logins under way, by what hashes for them: that of an earlier configuration stays until its last is through. */
  const underWay = new Map([[parts.hashing.value, new Set<Promise<string>>()]]);

  async function logIn(...attempt: Parameters<LoginService["logIn"]>): Promise<string> {
    const running = underWay.get(parts.hashing.value);
    const login = parts.service.value.logIn(...attempt);
    running?.add(login);
    return login.finally(() => running?.delete(login));
  }

  async function leave(pool: HashingPool): Promise<void> {
    await Promise.allSettled([...(underWay.get(pool) ?? [])]);
    underWay.delete(pool);
    await pool.close();
  }

  return {
    service: { logIn },
    async prepare(configuration) {
      const before = parts;
      const next = await openParts({ ...options, configuration }, before);
      return {
        async commit() {
          parts = next;
          next.throttle.change(throttleLimitsOf(configuration));
          warnOfNobody({ ...options, configuration });
          if (next.hashing !== before.hashing) {
            underWay.set(next.hashing.value, new Set());
            next.hashing.value.start();
            void leave(before.hashing.value);
          }
          if (next.users !== before.users) closeAll(before.users.value);
          else await Promise.all(next.users.value.map(({ store }) => store.reload()));
        },
        drop() {
          if (next.users !== before.users) closeAll(next.users.value);
        },
      };
    },
    waiting: () => [...underWay.keys()].reduce((sum, { pending }) => sum + pending, 0),
    start: () => parts.hashing.value.start(),
    async close() {
      closeAll(parts.users.value);
      await Promise.all([...underWay.keys()].map((pool) => pool.close()));
    },
  };
}

function warnOfNobody({ configuration, log }: LoginsOptions): void {
  if (configuration.users.length === 0) log.warn("there are no users: nobody can log in");
}

async function openParts(
  options: LoginsOptions,
  before: LoginParts | undefined,
): Promise<LoginParts> {
  const { configuration, keys, clock, observer } = options;
  const { login } = configuration;
  const users = await keepAwaited(before?.users, configuration.users, () => openUsers(options));
  const hashing = keep(before?.hashing, login.hashing, () => createHashingPool(login.hashing));
  const throttle = before?.throttle ?? createLoginThrottle(throttleLimitsOf(configuration), clock);
  const { issuer, audience, lifetime: lifetimeMs } = configuration.tokens;
  const issued = { issuer, audience, lifetimeMs };
  const prints = [users, hashing].map(({ madeFrom }) => madeFrom);
  const service = keep(before?.service, [prints, issued], () => {
    const stores = users.value.map(({ store }) => store);
    return createLoginService({
      maxWaiting: login.hashing.queue,
      credentials: createCredentialCheck(stores, hashing.value),
      throttle,
      issuer: createTokenIssuer({ ...issued, keys, clock, observer }),
    });
  });
  return { users, hashing, throttle, service };
}

/** All or none. */
async function openUsers({
  configuration,
  log,
  reloads,
}: LoginsOptions): Promise<readonly WatchedUsers[]> {
  const opened: WatchedUsers[] = [];
  try {
    for (const { path } of configuration.users) {
      const state = reloads.add();
      const store = await openFileUserStore(path, { log, reloaded: state.reloaded });
      opened.push({ store, state });
    }
    return opened;
  } catch (error) {
    closeAll(opened);
    throw error;
  }
}

function closeAll(users: readonly WatchedUsers[]): void {
  for (const { store, state } of users) {
    store.close();
    state.gone();
  }
}

function throttleLimitsOf({ login }: Configuration): LoginThrottleLimits {
  const { attempts, within, ban, address, account, global } = login.throttle;
  return {
    pair: { attempts, withinMs: within, banMs: ban },
    address: { attempts: address.attempts, withinMs: address.within, banMs: address.ban },
    account: { attempts: account.attempts, withinMs: account.within },
    global: { attempts: global.attempts, withinMs: global.within },
  };
}
