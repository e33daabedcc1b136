import { setTimeout as sleep } from "node:timers/promises";
import type { UserStore } from "../user-store.ts";

const REMEMBERED = 32;
/** The assumed number of users of a store that cannot count them. */
const ASSUMED_USERS = 1_000;

/**
 * How long a store has lately taken for names that it knows, which an unknown name has to take as well. The times come from
 * the store itself: it does the work of verifying a password, and nobody else can do the same.
 */
export class RecentTimes {
  readonly #ms: number[] = [];
  #at = 0;

  record(ms: number): void {
    this.#ms[this.#at] = ms;
    this.#at = (this.#at + 1) % REMEMBERED;
  }

  /** Waits as long as one of them, picked at random; not at all before there is one. */
  async spend(): Promise<void> {
    const ms = this.#ms[Math.floor(Math.random() * this.#ms.length)];
    if (ms !== undefined) await sleep(ms);
  }

  readonly decoys: UserStore["decoys"] = {
    count: () => ASSUMED_USERS,
    verify: () => this.spend(),
  };
}
