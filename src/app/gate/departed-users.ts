import type { OpenUserStore } from "../../credentials/stores/user-store.ts";

/** Detects users who were removed or disabled, and therefore can no longer log in. */
export class DepartedUsers {
  readonly #tell: (names: readonly string[], atStart: boolean) => void;
  #stores: (() => readonly OpenUserStore[]) | undefined;
  #known: ReadonlySet<string> | undefined;

  /** @param tell called with the users who were removed or disabled; at start, with those who are disabled. */
  constructor(tell: (names: readonly string[], atStart: boolean) => void) {
    this.#tell = tell;
  }

  /** Sets the stores, once all of them are open. */
  begin(stores: () => readonly OpenUserStore[]): void {
    this.#stores = stores;
    this.look();
  }

  /** Compares the users of all stores with the previous ones. Call it whenever a store has changed. */
  readonly look = (): void => {
    if (this.#stores === undefined) return;
    const users = this.#stores().flatMap((store) => [...(store.users?.() ?? [])]);
    const namesOf = (disabled: boolean): Set<string> =>
      new Set(users.filter((user) => user.disabled === disabled).map(({ name }) => name));
    const active = namesOf(false);
    const atStart = this.#known === undefined;
    const departed = [...(this.#known ?? namesOf(true))].filter((name) => !active.has(name));
    this.#known = active;
    if (departed.length > 0) this.#tell(departed, atStart);
  };
}
