import type { OpenUserStore } from "../../credentials/stores/user-store.ts";

/** Notices who could log in and cannot any more: users who were removed or disabled. */
export class DepartedUsers {
  readonly #tell: (names: readonly string[], atStart: boolean) => void;
  #stores: (() => readonly OpenUserStore[]) | undefined;
  #known: ReadonlySet<string> | undefined;

  /** @param tell called with who is gone; at the start, with who is disabled. */
  constructor(tell: (names: readonly string[], atStart: boolean) => void) {
    this.#tell = tell;
  }

  /** Takes the stores when all of them are open. */
  begin(stores: () => readonly OpenUserStore[]): void {
    this.#stores = stores;
    this.look();
  }

  /** Looks at all stores. To be called when one has other users. */
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
