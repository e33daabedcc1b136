import type { Configuration } from "../config/schema.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import { createCredentialCheck } from "../credentials/credential-check.ts";
import { openFileUserStore } from "../credentials/file-user-store.ts";
import { createHashingPool } from "../credentials/hashing-pool.ts";
import { createLoginThrottle } from "../credentials/login-throttle.ts";
import type { Clock } from "../lib/clock.ts";
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
  /** How many wait for their password to be hashed. */
  readonly waiting: () => number;
  /** Makes ready what the first login would wait for. */
  start(): void;
  close(): Promise<void>;
}

/** @throws ConfigError when a users file is broken. */
export function openLogins(options: LoginsOptions): Logins {
  const { configuration, keys, clock, log, observer, reloaded } = options;
  const { login, tokens, users } = configuration;
  const stores = users.map(({ path }) => openFileUserStore(path, { log, reloaded }));
  if (stores.length === 0) log.warn("there are no users: nobody can log in");
  const hashing = createHashingPool(login.hashing);
  const { attempts, within, ban } = login.throttle;
  const service = createLoginService({
    maxWaiting: login.hashing.queue,
    credentials: createCredentialCheck(stores, hashing),
    throttle: createLoginThrottle({ attempts, withinMs: within, banMs: ban }, clock),
    issuer: createTokenIssuer({
      issuer: tokens.issuer,
      audience: tokens.audience,
      lifetimeMs: tokens.lifetime,
      keys,
      clock,
      observer,
    }),
  });
  return {
    service,
    waiting: () => hashing.pending,
    start: () => hashing.start(),
    async close() {
      for (const store of stores) store.close();
      await hashing.close();
    },
  };
}
