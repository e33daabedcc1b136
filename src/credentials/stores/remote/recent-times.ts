import { setTimeout as sleep } from "node:timers/promises";
import type { UserStore } from "../user-store.ts";

const REMEMBERED = 32;
/** The assumed number of users of a store that cannot count them. */
const ASSUMED_USERS = 1_000;

/**
 * The store's recent response times for known names. An unknown name must take as long. The times are measured at the
 * store, since only the store does the work of verifying a password.
 */
export class RecentTimes {
  readonly #ms: number[] = [];
  #at = 0;

  record(ms: number): void {
    this.#ms[this.#at] = ms;
    this.#at = (this.#at + 1) % REMEMBERED;
  }

  /** Waits for one of the times, picked at random. Returns at once if there is none yet. */
  async spend(): Promise<void> {
    const ms = this.#ms[Math.floor(Math.random() * this.#ms.length)];
    if (ms !== undefined) await sleep(ms);
  }

  readonly decoys: UserStore["decoys"] = {
    count: () => ASSUMED_USERS,
    verify: () => this.spend(),
  };
}
