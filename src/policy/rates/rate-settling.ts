import type { RateLimit } from "../../core/route/rate-limit.ts";
import type { SettleRates } from "../../core/shared-parts.ts";
import { PacedTask } from "../../lib/async/paced-task.ts";

/** How often spending is settled with other replicas, in milliseconds. */
const SETTLE_EVERY_MS = 100;
/** The maximum number of keys that wait for settlement. The spending of further keys counts only in this process. */
const MOST_KEYS = 50_000;

/** Settles local spending with other replicas, at most ten times a second. Requests do not wait for it. */
export class RateSettling {
  readonly #settle: SettleRates;
  readonly #costMs: number;
  readonly #settled: (key: string, behindMs: number) => void;
  /** Requests since the last settlement, by key. */
  #spent = new Map<string, number>();
  readonly #runs = new PacedTask(SETTLE_EVERY_MS, () => this.#run());

  /**
   * @param costMs the cost of one request in the limit's time, in milliseconds.
   * @param settled receives the milliseconds until the spending of all replicas on a key is paid back.
   */
  constructor(
    settle: SettleRates,
    costMs: number,
    settled: (key: string, behindMs: number) => void,
  ) {
    this.#settle = settle;
    this.#costMs = costMs;
    this.#settled = settled;
  }

  spend(key: string): void {
    const spent = this.#spent.get(key);
    if (spent === undefined && this.#spent.size >= MOST_KEYS) return;
    this.#spent.set(key, (spent ?? 0) + 1);
    this.#runs.request();
  }

  /** Runs one settlement. Returns whether more was spent meanwhile. */
  async #run(): Promise<boolean> {
    const spent = [...this.#spent];
    this.#spent = new Map();
    const spendings = spent.map(([key, requests]) => ({ key, costMs: requests * this.#costMs }));
    // Spending that cannot be settled counts only here.
    const behind = await this.#settle(spendings).catch(() => undefined);
    for (const [place, [key]] of spent.entries()) {
      const behindMs = behind?.[place];
      if (behindMs === undefined || !(behindMs >= 0)) continue;
      this.#settled(key, behindMs + (this.#spent.get(key) ?? 0) * this.#costMs);
    }
    return this.#spent.size > 0;
  }
}

/**
 * Returns the name of a limit. Threads and replicas share counts if the name of the route and the limit are the same.
 */
export function limitName(
  route: string,
  { by, requests, withinMs, burst }: Omit<RateLimit, "take">,
): string {
  return [route, by, requests, withinMs, burst].join("\0");
}

/** Returns a settling function for the keys of one limit. */
export function settlingOf(
  limit: string,
  settle: SettleRates | undefined,
): SettleRates | undefined {
  if (settle === undefined) return undefined;
  return (spendings) =>
    settle(spendings.map(({ key, costMs }) => ({ key: `${limit}\0${key}`, costMs })));
}
