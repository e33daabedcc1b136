import type { Clock } from "../../lib/clock.ts";
import { TwoGenerationCache } from "./two-generation-cache.ts";

/**
 * Remembers the networks that each name has logged in from. Only a right password adds one, so attackers cannot fill
 * it.
 */
export interface KnownNetworks {
  has(username: string, network: string): boolean;
  remember(username: string, network: string): void;
}

interface KnownNetwork {
  readonly network: string;
  /** Monotonic. */
  readonly until: number;
}

const REMEMBERED_MS = 30 * 24 * 3_600_000;
/**
 * Networks remembered for each name. A client that moves through more (a phone, or an attacker who wants to fill the
 * memory) loses the oldest.
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
