import { hash } from "node:crypto";
import { isIPv6 } from "node:net";
import type { LoginThrottle } from "../core/login-throttle.ts";
import type { Clock } from "../lib/clock.ts";
import { plainAddress } from "../lib/networks.ts";
import { createFailureCount } from "./failure-count.ts";

export interface LoginThrottleLimits {
  /** So many failures of one name from one network within `withinMs` ban the two together for `banMs`. */
  readonly attempts: number;
  readonly withinMs: number;
  readonly banMs: number;
}

/** A network may fail so many times as often over all names: several people can share one address. */
const NETWORK_ALLOWANCE = 10;

/**
 * Counts failures by name and client network together, so that nobody can lock somebody else out from another network,
 * and by network alone, so that one password cannot be tried on every name. A right password clears its own name on
 * its own network only: else a guesser with an account of their own would start afresh at will.
 */
export function createLoginThrottle(limits: LoginThrottleLimits, clock: Clock): LoginThrottle {
  const pairs = createFailureCount(limits, clock);
  const networks = createFailureCount(
    { ...limits, attempts: limits.attempts * NETWORK_ALLOWANCE },
    clock,
  );
  return {
    retryAfter(username, client) {
      const waitMs = Math.max(
        pairs.bannedForMs(pairKey(username, client)),
        networks.bannedForMs(networkOf(client)),
      );
      return Math.ceil(waitMs / 1000);
    },
    remaining(username, client) {
      return pairs.remaining(pairKey(username, client));
    },
    failed(username, client) {
      pairs.failed(pairKey(username, client));
      networks.failed(networkOf(client));
    },
    succeeded(username, client) {
      pairs.forget(pairKey(username, client));
    },
  };
}

/** Of fixed length, whatever the client calls itself. No address holds a NUL, so the first one ends it. */
function pairKey(username: string, client: string): string {
  return hash("sha256", `${networkOf(client)}\0${username}`, "base64url");
}

/** The address itself, or the /64 that one subscriber has of IPv6 (RFC 6177 §2). */
function networkOf(client: string): string {
  const address = plainAddress(client);
  if (!isIPv6(address)) return address;
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const first = groupsOf(head);
  const last = tail === undefined ? [] : groupsOf(tail);
  const zeros = Array.from({ length: Math.max(0, 8 - first.length - last.length) }, () => 0);
  return `${[...first, ...zeros, ...last]
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(":")}::/64`;
}

/** A dotted quad at the end stands for two groups; it is never among the first four, so its value does not matter. */
function groupsOf(part: string): number[] {
  if (part === "") return [];
  return part.split(":").flatMap((group) => (group.includes(".") ? [0, 0] : [parseInt(group, 16)]));
}
