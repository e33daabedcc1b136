import type { Change } from "../../core/change.ts";
import type { Traffic, TrafficChange } from "../traffic.ts";

export type ThreadChange = ReturnType<typeof threadChange>;

/**
 * Returns the functions that change the configuration of this thread. The main thread decides whether a prepared change
 * is committed, so that either all threads change or none.
 *
 * @param committed called just before a change is put in force.
 */
export function threadChange(
  traffic: Promise<Traffic>,
  committed: (changed: TrafficChange) => void,
) {
  let prepared: Promise<(Change & { readonly changed: TrafficChange }) | undefined> | undefined;
  /** Returns the prepared change, but only once. */
  const take = () => {
    const taken = prepared;
    prepared = undefined;
    return taken;
  };
  return {
    /** Prepares a change. Rejects if this is not possible. */
    async prepare(changed: TrafficChange): Promise<void> {
      const running = await traffic;
      const preparing = running.prepare(changed).then((change) => ({ ...change, changed }));
      prepared = preparing.catch(() => undefined);
      await preparing;
    },
    /** Puts the prepared change in force; does nothing if there is none. */
    async commit(): Promise<void> {
      const change = await take();
      if (change === undefined) return;
      committed(change.changed);
      await change.commit();
    },
    async rollback(): Promise<void> {
      const change = await take();
      change?.rollback();
    },
  };
}
