import type { Clock } from "../../lib/clock.ts";
import { TwoGenerationCache } from "./two-generation-cache.ts";

/**
 * Remembers the networks that each name has logged in from. Only a right password adds a network, so attackers cannot
 * fill the memory.
 */
export interface KnownNetworks {
  /** Both are digests: of the name, and of name and network together. */
  has(account: string, pair: string): boolean;
  remember(account: string, pair: string): void;
}

interface KnownNetwork {
  readonly pair: string;
  /** Monotonic. */
  readonly until: number;
}

const REMEMBERED_MS = 30 * 24 * 3_600_000;
/**
 * Networks remembered for each name. For a client that uses more (a phone, or an attacker who wants to fill the
 * memory), the oldest are forgotten.
 */
const NETWORKS_EACH = 8;
/**
 * Maximum number of names: about 10 MB. Beyond it, the networks of the names that logged in longest ago become unknown
 * again.
 */
const MAX_NAMES = 10_000;

export function createKnownNetworks(clock: Clock): KnownNetworks {
  const names = new TwoGenerationCache<readonly KnownNetwork[]>(MAX_NAMES);

  return {
    has(account, pair) {
      const known = names.get(account)?.find((each) => each.pair === pair);
      return known !== undefined && clock.monotonic() < known.until;
    },

    remember(account, pair) {
      const others = names.get(account)?.filter((each) => each.pair !== pair) ?? [];
      const latest = { pair, until: clock.monotonic() + REMEMBERED_MS };
      names.set(account, [...others, latest].slice(-NETWORKS_EACH));
    },
  };
}
