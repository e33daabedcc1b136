import { LRUCache } from "lru-cache";

const MOST = 1_000;
/** Longer ids are not remembered, since clients choose them. */
const LONGEST = 256;
const LONGEST_REST_MS = 300_000;

/** Key ids that were not found. Each is looked up less and less often. */
export class AbsentKids {
  readonly #firstRestMs: number;
  readonly #absent = new LRUCache<string, { readonly restMs: number; readonly until: number }>({
    max: MOST,
  });

  /**
   * @param firstRestMs how long an id rests after it was not found once, in milliseconds. Doubles each time, up to five
   * minutes.
   */
  constructor(firstRestMs: number) {
    this.#firstRestMs = firstRestMs;
  }

  /** Reports whether an id still rests. @param now monotonic, milliseconds. */
  rests(kid: string, now: number): boolean {
    const known = this.#absent.get(kid);
    return known !== undefined && now < known.until;
  }

  /** Records that an id was not found. */
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
