import { hash } from "node:crypto";
import type { ConcurrencyLimit } from "../../core/route/concurrency.ts";
import type { SettleConcurrency } from "../../core/shared-parts.ts";
import { ConcurrencySettling } from "./concurrency-settling.ts";
import type { InFlight } from "./in-flight.ts";

/** Maximum length of a key. A longer one is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;

/**
 * Creates a limit on the requests in flight on a route.
 *
 * @param inFlight counts the requests in flight in this process, for all routes.
 * @param settle adds up the requests in flight of all replicas. Without it, this replica counts on its own.
 */
export function createConcurrencyLimit(
  route: string,
  options: Pick<ConcurrencyLimit, "requests" | "by">,
  inFlight: InFlight,
  settle?: SettleConcurrency,
): ConcurrencyLimit {
  const { requests, by } = options;
  const settling = settle && new ConcurrencySettling(settle, inFlight);
  const nameOf = (key: string): string => {
    const short = key.length > LONGEST_KEY ? hash("sha256", key, "base64url") : key;
    return `${route}\0${by}\0${short}`;
  };
  return {
    ...options,
    take(key) {
      const name = nameOf(key);
      const all = inFlight.add(name) + (settling?.elsewhere(name) ?? 0);
      const allowed = all <= requests;
      if (!allowed) inFlight.remove(name);
      settling?.changed(name);
      return allowed;
    },
    release(key) {
      const name = nameOf(key);
      inFlight.remove(name);
      settling?.changed(name);
    },
  };
}
