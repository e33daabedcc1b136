import { setTimeout as after } from "node:timers/promises";
import type { Configuration } from "../config/schema.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { LoginThrottle } from "../core/login-throttle.ts";
import type { Observer } from "../core/observer.ts";
import { createCredentialCheck } from "../credentials/credential-check.ts";
import { type FileUserStore, openFileUserStore } from "../credentials/file-user-store.ts";
import { createHashingPool, type HashingPool } from "../credentials/hashing-pool.ts";
import { createLoginThrottle, type LoginThrottleLimits } from "../credentials/login-throttle.ts";
import type { Clock } from "../lib/clock.ts";
import { keep, type Kept } from "../lib/kept.ts";
import { createLoginService } from "../server/login-service.ts";
import { createTokenIssuer } from "../tokens/issuer.ts";
import type { SigningKeys } from "../tokens/signing-keys.ts";

export interface LoginsOptions {
  readonly configuration: Configuration;
  readonly keys: SigningKeys;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Pick<Observer, "tokenIssued">;
  /** Told whenever a users file has been read again. */
  readonly reloaded: (successful: boolean) => void;
}

/** Everything that logs people in: once in a process, whatever the number of threads. */
export interface Logins {
  readonly service: LoginService;
  /**
   * Puts another configuration in force; what was counted of failed attempts goes on counting.
   * @throws ConfigError when a users file is broken; then everything is as it was.
   */
  change(configuration: Configuration): Promise<void>;
  /** How many wait for their password to be hashed. */
  readonly waiting: () => number;
  /** Makes ready what the first login would wait for. */
  start(): void;
  close(): Promise<void>;
}

/** How often is looked whether the last login of an earlier configuration is through, in milliseconds. */
const PENDING_MS = 100;

/** What logs in under one configuration. */
interface LoginParts {
  readonly stores: Kept<readonly FileUserStore[]>;
  readonly hashing: Kept<HashingPool>;
  readonly throttle: Kept<LoginThrottle>;
  readonly service: LoginService;
}

/** @throws ConfigError when a users file is broken. */
export function openLogins(options: LoginsOptions): Logins {
  let parts = openParts(options, undefined);
  return {
    service: { logIn: (...attempt) => parts.service.logIn(...attempt) },
    async change(configuration) {
      const before = parts;
      parts = openParts({ ...options, configuration }, before);
      if (parts.stores !== before.stores) closeAll(before.stores.value);
      if (parts.hashing === before.hashing) return;
      parts.hashing.value.start();
      while (before.hashing.value.pending > 0) await after(PENDING_MS);
      await before.hashing.value.close();
    },
    waiting: () => parts.hashing.value.pending,
    start: () => parts.hashing.value.start(),
    async close() {
      closeAll(parts.stores.value);
      await parts.hashing.value.close();
    },
  };
}

function openParts(options: LoginsOptions, before: LoginParts | undefined): LoginParts {
  const { configuration, keys, clock, log, observer, reloaded } = options;
  const { login, tokens, users } = configuration;
  const limits = throttleLimitsOf(configuration);
  const stores = keep(before?.stores, users, () => openStores(users, { log, reloaded }));
  const hashing = keep(before?.hashing, login.hashing, () => createHashingPool(login.hashing));
  const throttle = keep(before?.throttle, limits, () => createLoginThrottle(limits, clock));
  if (users.length === 0) log.warn("there are no users: nobody can log in");
  const service = createLoginService({
    maxWaiting: login.hashing.queue,
    credentials: createCredentialCheck(stores.value, hashing.value),
    throttle: throttle.value,
    issuer: createTokenIssuer({
      issuer: tokens.issuer,
      audience: tokens.audience,
      lifetimeMs: tokens.lifetime,
      keys,
      clock,
      observer,
    }),
  });
  return { stores, hashing, throttle, service };
}

/** All or none. */
function openStores(
  users: Configuration["users"],
  watching: Pick<LoginsOptions, "log" | "reloaded">,
): readonly FileUserStore[] {
  const opened: FileUserStore[] = [];
  try {
    for (const { path } of users) opened.push(openFileUserStore(path, watching));
    return opened;
  } catch (error) {
    closeAll(opened);
    throw error;
  }
}

function closeAll(stores: readonly FileUserStore[]): void {
  for (const store of stores) store.close();
}

/** One address may fail as often as this many names: people behind one gateway share it. */
const NAMES_BEHIND_AN_ADDRESS = 10;

function throttleLimitsOf({ login }: Configuration): LoginThrottleLimits {
  const { attempts, within, ban, address, account, global } = login.throttle;
  return {
    pair: { attempts, withinMs: within, banMs: ban },
    address: {
      attempts: address.attempts ?? attempts * NAMES_BEHIND_AN_ADDRESS,
      withinMs: address.within ?? within,
      banMs: address.ban ?? ban,
    },
    account: { attempts: account.attempts, withinMs: account.within },
    global: { attempts: global.attempts, withinMs: global.within },
  };
}
