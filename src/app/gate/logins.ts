import type { Configured } from "../../config/snapshot.ts";
import type { Change } from "../../core/change.ts";
import type { LoginService } from "../../core/login.ts";
import type { AttemptEnd, AttemptSharing } from "../../core/shared-parts.ts";
import type { Reloaded } from "../../core/status.ts";
import type { Observer } from "../../core/observer.ts";
import { HashingPool, type PasswordVerifier } from "../../credentials/hashing/hashing-pool.ts";
import { createCredentialCheck, createLoginService } from "../../credentials/login-service.ts";
import { openUserStore } from "../../credentials/stores/store-kinds.ts";
import { type OpenUserStore, storeNames } from "../../credentials/stores/user-store.ts";
import { FailureThrottle } from "../../credentials/throttle/login-throttle.ts";
import {
  Leased,
  type Reusable,
  reuseOrCreate,
  reuseOrCreateAsync,
} from "../../lib/async/leased.ts";
import { KeyedSemaphore } from "../../lib/async/keyed-semaphore.ts";
import type { StoreState } from "../../observe/metrics/gauges.ts";
import { TokenIssuer } from "../../tokens/issuer.ts";
import type { SigningKeys } from "../../tokens/keys/key-ring.ts";
import { usersFilesIn } from "../from-files.ts";
import type { GateOptions } from "./gate-options.ts";
import type { ReloadState, ReloadStates } from "../reload/reload-states.ts";

/**
 * Returns a function that compares the users of all stores with those of its last call, to detect users who were removed
 * or disabled, and therefore can no longer log in.
 *
 * @param tell called with these users; at start, with those who are disabled.
 */
function departures(tell: LoginsOptions["departed"]): (stores: readonly OpenUserStore[]) => void {
  let known: ReadonlySet<string> | undefined;
  return (stores) => {
    const users = stores.flatMap((store) => [...(store.users?.() ?? [])]);
    const namesOf = (disabled: boolean): Set<string> =>
      new Set(users.filter((user) => user.disabled === disabled).map(({ name }) => name));
    const active = namesOf(false);
    const atStart = known === undefined;
    const departed = [...(known ?? namesOf(true))].filter((name) => !active.has(name));
    known = active;
    if (departed.length > 0) tell(departed, atStart);
  };
}

interface LoginsOptions extends Configured, Pick<GateOptions, "clock" | "log"> {
  readonly keys: SigningKeys;
  readonly observer: Pick<Observer, "tokenIssued" | "storeAnswered" | "outdatedHashUsed">;
  /** Receives the reload state of each user store. */
  readonly reloads: ReloadStates;
  /** Shares login attempts with other replicas. Without it, this replica counts only its own. */
  readonly attempts?: AttemptSharing | undefined;
  /** Called with users who can no longer log in; at start, with those who are disabled. */
  readonly departed: (names: readonly string[], atStart: boolean) => void;
}

/** The logins of the whole process, whatever the number of threads. */
export type Logins = Awaited<ReturnType<typeof openLogins>>;

/** A store and the state of its last reload. */
interface FollowedStore {
  /** The name in metrics. */
  readonly name: string;
  readonly store: OpenUserStore;
  readonly state: ReloadState;
}

type Stores = Leased<readonly FollowedStore[]>;

/** The parts that one configuration determines. */
interface LoginParts {
  readonly stores: Reusable<Stores>;
  readonly service: Reusable<LoginService>;
}

/** The parts that live as long as the process. */
interface Queues {
  readonly throttle: FailureThrottle;
  readonly turns: KeyedSemaphore;
  readonly hashing: HashingPool;
}

/** Opens the user stores and everything else that logins need. @throws ConfigError if a user store cannot be used. */
export async function openLogins(options: LoginsOptions) {
  const { configuration, clock } = options;
  const { hashing: hashingLimits, throttle: throttleLimits } = configuration.login;
  const throttle = new FailureThrottle(throttleLimits, clock, options.attempts);
  const turns = new KeyedSemaphore(hashingLimits.queue);
  const hashing = new HashingPool(hashingLimits);
  const queues = { throttle, turns, hashing };
  const departedFrom = departures(options.departed);
  let look = (): void => undefined;
  const opening = { ...options, usersChanged: () => look() };
  let parts = await openParts(opening, queues, undefined);
  look = () => departedFrom(parts.stores.value.value.map(({ store }) => store));
  look();

  return {
    service: serviceOf(() => parts),
    /**
     * Prepares another configuration. Keeps the counts of failed attempts. Running logins finish with the stores with
     * which they began; those that succeed begin again with the new ones.
     * @throws ConfigError if a user store cannot be used.
     */
    async prepare({ configuration: changed, files }: Configured): Promise<Change> {
      const before = parts;
      const next = await openParts({ ...opening, configuration: changed, files }, queues, before);
      return {
        async commit() {
          parts = next;
          throttle.change(changed.login.throttle);
          turns.maxWaiting = changed.login.hashing.queue;
          hashing.change(changed.login.hashing);
          if (next.stores !== before.stores) void before.stores.value.retire();
          else {
            const contentOf = usersFilesIn(files);
            await Promise.all(next.stores.value.value.map(({ store }) => store.reload(contentOf)));
          }
          look();
        },
        rollback() {
          if (next.stores !== before.stores) void next.stores.value.retire();
        },
      };
    },
    /** The number of logins that wait for a hashing thread. */
    waiting: () => hashing.pending,
    /** The stores in force. */
    stores: () => parts.stores.value.value,
    /** Returns the metrics that a store itself keeps, by its name in metrics. */
    storeState(wanted: string): StoreState {
      const found = parts.stores.value.value.find(({ name }) => name === wanted)?.store;
      return { connections: found?.connections?.(), outdated: found?.outdated?.() };
    },
    /** Counts an attempt that ended in another replica. */
    attemptEnded: (end: AttemptEnd, agoMs: number) => throttle.arrived(end, agoMs),
    async close() {
      await Promise.all([parts.stores.value.retire(), hashing.close()]);
    },
  };
}

/** @param inForce returns the parts in force. */
function serviceOf(inForce: () => LoginParts): LoginService {
  return {
    async logIn(...attempt) {
      for (;;) {
        const { stores, service } = inForce();
        const answer = await stores.value.use(() => service.value.logIn(...attempt));
        // A reload may have removed the store that has vouched, or shortened the life of tokens: nobody gets that one.
        if (inForce().service === service) return answer;
      }
    },
  };
}

interface OpeningOptions extends LoginsOptions {
  /** Called when the users of a store have changed. */
  readonly usersChanged: () => void;
}

async function openParts(
  options: OpeningOptions,
  { throttle, turns, hashing }: Queues,
  before: LoginParts | undefined,
): Promise<LoginParts> {
  const { configuration, keys, clock, observer } = options;
  const stores = await reuseOrCreateAsync(before?.stores, configuration.users, () =>
    openStores(options, hashing),
  );
  const { issuer, audience, lifetime: lifetimeMs } = configuration.tokens;
  const issued = { issuer, audience, lifetimeMs };
  const service = reuseOrCreate(before?.service, [stores.inputs, issued], () =>
    createLoginService({
      credentials: createCredentialCheck(stores.value.value, hashing, options),
      throttle,
      turns,
      clock,
      issuer: new TokenIssuer({ ...issued, keys, observer }),
    }),
  );
  return { stores, service };
}

/** Opens all stores, or none. */
async function openStores(
  { configuration, files, log, clock, reloads, usersChanged }: OpeningOptions,
  verifier: PasswordVerifier,
): Promise<Stores> {
  const opened: FollowedStore[] = [];
  try {
    const names = storeNames(configuration.users);
    for (const [place, settings] of configuration.users.entries()) {
      const state = reloads.add();
      const reloaded: Reloaded = (problems) => {
        state.reloaded(problems);
        if (problems.length === 0) usersChanged();
      };
      const store = await openUserStore(settings, {
        contentOf: usersFilesIn(files),
        log,
        clock,
        verifier,
        queue: configuration.login.hashing.queue,
        reloaded,
      });
      opened.push({ name: names[place] ?? settings.kind, store, state });
    }
    return new Leased<readonly FollowedStore[]>(opened, closeAll);
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

async function closeAll(stores: readonly FollowedStore[]): Promise<void> {
  for (const { state } of stores) state.removed();
  await Promise.all(stores.map(({ store }) => store.close()));
}
