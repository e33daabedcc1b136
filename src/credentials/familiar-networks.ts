import type { Clock } from "../lib/clock.ts";
import { RecentKeys } from "./recent-keys.ts";

/** Remembers from which networks a name has logged in. Only a right password adds to it: strangers cannot fill it. */
export interface FamiliarNetworks {
  has(username: string, network: string): boolean;
  remember(username: string, network: string): void;
}

interface Familiar {
  readonly network: string;
  /** Monotonic. */
  readonly until: number;
}

const REMEMBERED_MS = 30 * 24 * 3_600_000;
/** Whoever moves through more (a phone, or somebody who wants to fill this memory) loses the oldest. */
const NETWORKS_EACH = 8;
/** Some 10 MB at worst. Beyond it those who logged in longest ago are strangers again. */
const MAX_NAMES = 10_000;

export function createFamiliarNetworks(clock: Clock): FamiliarNetworks {
  const names = new RecentKeys<readonly Familiar[]>(MAX_NAMES);

  return {
    has(username, network) {
      const known = names.get(username)?.find((each) => each.network === network);
      return known !== undefined && clock.monotonic() < known.until;
    },

    remember(username, network) {
      const others = names.get(username)?.filter((each) => each.network !== network) ?? [];
      const latest = { network, until: clock.monotonic() + REMEMBERED_MS };
      names.set(username, [...others, latest].slice(-NETWORKS_EACH));
    },
  };
}
