import type { RateLimit } from "../../core/route/rate-limit.ts";
import type { SettleRates } from "../../core/shared-parts.ts";
import { PacedTask } from "../../lib/async/paced-task.ts";

/** How often what was spent is settled with other replicas, in milliseconds. */
const SETTLE_EVERY_MS = 100;
/** Maximum number of keys that wait to be settled; what others spend meanwhile stays uncounted. */
const MOST_KEYS = 50_000;

/** Settles the local use with other replicas, at most ten times a second. Requests do not wait for it. */
export class RateSettling {
  readonly #settle: SettleRates;
  readonly #costMs: number;
  readonly #settled: (key: string, behindMs: number) => void;
  /** Requests since the last settlement, by key. */
  #spent = new Map<string, number>();
  readonly #runs = new PacedTask(SETTLE_EVERY_MS, () => this.#run());

  /**
   * @param costMs of one request.
   * @param settled takes after how many milliseconds everything is paid back that was spent anywhere.
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

  /** Returns whether more was spent meanwhile. */
  async #run(): Promise<boolean> {
    const spent = [...this.#spent];
    this.#spent = new Map();
    const spendings = spent.map(([key, requests]) => ({ key, costMs: requests * this.#costMs }));
    // Use that cannot be settled counts only here.
    const behind = await this.#settle(spendings).catch(() => undefined);
    for (const [place, [key]] of spent.entries()) {
      const behindMs = behind?.[place];
      if (behindMs === undefined || !(behindMs >= 0)) continue;
      this.#settled(key, behindMs + (this.#spent.get(key) ?? 0) * this.#costMs);
    }
    return this.#spent.size > 0;
  }
}

/** Threads and replicas count the same requests if their route has the same name and the same limit. */
export function limitName(
  route: string,
  { by, requests, withinMs, burst }: Omit<RateLimit, "take">,
): string {
  return [route, by, requests, withinMs, burst].join("\0");
}

/** Settles one limit. */
export function settlingOf(
  limit: string,
  settle: SettleRates | undefined,
): SettleRates | undefined {
  if (settle === undefined) return undefined;
  return (spendings) =>
    settle(spendings.map(({ key, costMs }) => ({ key: `${limit}\0${key}`, costMs })));
}
