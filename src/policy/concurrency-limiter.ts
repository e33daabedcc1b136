import { hash } from "node:crypto";
import type { ConcurrencyLimit } from "../core/route/concurrency.ts";

/** Maximum length of a key. A longer one is replaced by its hash: a subject can be as long as a token. */
const LONGEST_KEY = 128;

/** Counts in memory. Keys without requests take none, so there are never more than requests in flight. */
export function createConcurrencyLimit(
  options: Pick<ConcurrencyLimit, "requests" | "by">,
): ConcurrencyLimit {
  const counts = new Map<string, number>();
  const nameOf = (key: string): string =>
    key.length > LONGEST_KEY ? hash("sha256", key, "base64url") : key;
  return {
    ...options,
    take(key) {
      const name = nameOf(key);
      const count = counts.get(name) ?? 0;
      if (count >= options.requests) return false;
      counts.set(name, count + 1);
      return true;
    },
    release(key) {
      const name = nameOf(key);
      const count = (counts.get(name) ?? 1) - 1;
      if (count > 0) counts.set(name, count);
      else counts.delete(name);
    },
  };
}
