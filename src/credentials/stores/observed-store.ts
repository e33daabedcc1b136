import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";
import type { StoreResult } from "../../core/request/outcome.ts";
import type { Clock } from "../../lib/clock.ts";
import type { StoreSettings } from "./store-kinds.ts";
import type { UserStore } from "./user-store.ts";

/** Maximum number of users remembered as logged. Beyond it, all are logged again. */
const MOST_TOLD = 10_000;

/**
 * Returns the names of stores for metrics and the log: the kind, with a number from the second store of that kind on.
 */
export function storeNames(stores: readonly Pick<StoreSettings, "kind">[]): string[] {
  const counts = new Map<string, number>();
  return stores.map(({ kind }) => {
    const count = (counts.get(kind) ?? 0) + 1;
    counts.set(kind, count);
    return count === 1 ? kind : `${kind}_${count}`;
  });
}

export interface StoreObservation {
  readonly log: Log;
  readonly clock: Clock;
  readonly observer: Pick<Observer, "storeAnswered" | "outdatedHashUsed">;
}

/** Measures a store. Logs once for each user whose hash should be replaced. */
export function observedStore(
  store: UserStore,
  name: string,
  { log, clock, observer }: StoreObservation,
): UserStore {
  const told = new Set<string>();
  function tell(user: string, reason: string): void {
    observer.outdatedHashUsed(name);
    if (told.has(user)) return;
    if (told.size >= MOST_TOLD) told.clear();
    told.add(user);
    log.info("the password hash of a user should be replaced", { store: name, user, reason });
  }
  return {
    async verify(...attempt) {
      const began = clock.monotonic();
      let result: StoreResult = "error";
      try {
        const verdict = await store.verify(...attempt);
        ({ result } = verdict);
        if (verdict.result === "found" && verdict.outdated !== undefined) {
          tell(verdict.user.name, verdict.outdated);
        }
        return verdict;
      } finally {
        observer.storeAnswered(name, result, (clock.monotonic() - began) / 1000);
      }
    },
    decoys: store.decoys,
  };
}
