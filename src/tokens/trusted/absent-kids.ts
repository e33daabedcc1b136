import { LRUCache } from "lru-cache";

const MOST = 1_000;
/** Longer names are not remembered: a client chooses them. */
const LONGEST = 256;
const LONGEST_REST_MS = 300_000;

/** Key ids that were looked for and not found. Each is looked for less and less often. */
export class AbsentKids {
  readonly #firstRestMs: number;
  readonly #absent = new LRUCache<string, { readonly restMs: number; readonly until: number }>({
    max: MOST,
  });

  /** @param firstRestMs how long one rests that was not found once; doubled each time, up to five minutes. */
  constructor(firstRestMs: number) {
    this.#firstRestMs = firstRestMs;
  }

  /** Whether it was looked for a moment ago. @param now monotonic, milliseconds. */
  rests(kid: string, now: number): boolean {
    const known = this.#absent.get(kid);
    return known !== undefined && now < known.until;
  }

  /** It was looked for, and is not there. */
  add(kid: string, now: number): void {
    if (kid.length > LONGEST) return;
    const before = this.#absent.get(kid)?.restMs;
    const restMs = before === undefined ? this.#firstRestMs : Math.min(before * 2, LONGEST_REST_MS);
    this.#absent.set(kid, { restMs, until: now + restMs });
  }

  clear(): void {
    this.#absent.clear();
  }
}
