import type { Change } from "../../core/change.ts";
import type { Traffic, TrafficChange } from "../traffic.ts";

/**
 * The configuration change that this thread has prepared. The main thread decides whether it is committed, so that
 * either all threads change or none.
 */
export class PreparedChange {
  readonly #traffic: Promise<Traffic>;
  readonly #committed: (changed: TrafficChange) => void;
  #preparing: Promise<Change | undefined> = Promise.resolve(undefined);

  /** @param committed called just before a change is put in force. */
  constructor(traffic: Promise<Traffic>, committed: (changed: TrafficChange) => void) {
    this.#traffic = traffic;
    this.#committed = committed;
  }

  /** Prepares a change. Rejects if this is not possible. */
  async prepare(changed: TrafficChange): Promise<void> {
    const traffic = await this.#traffic;
    const preparing = traffic.prepare(changed).then(({ commit, rollback }) => ({
      commit: (): Promise<void> => {
        this.#committed(changed);
        return commit();
      },
      rollback,
    }));
    this.#preparing = preparing.catch(() => undefined);
    await preparing;
  }

  /** Puts the prepared change in force; does nothing if there is none. */
  async commit(): Promise<void> {
    const change = await this.#take();
    await change?.commit();
  }

  async rollback(): Promise<void> {
    const change = await this.#take();
    change?.rollback();
  }

  /** Returns the prepared change, but only once. */
  #take(): Promise<Change | undefined> {
    const taken = this.#preparing;
    this.#preparing = Promise.resolve(undefined);
    return taken;
  }
}
