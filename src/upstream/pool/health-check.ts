import { failureReason } from "../http/failures.ts";
import { headOf } from "./probe.ts";
import type { TargetOrigin } from "./target-origin.ts";

/** Times are in milliseconds. */
export interface HealthOptions {
  readonly path: string;
  readonly interval: number;
  readonly timeout: number;
  /** Checks in a row that change the state. */
  readonly healthy: number;
  readonly unhealthy: number;
  /** The statuses that count as healthy: ranges, both ends included. */
  readonly status: readonly (readonly [from: number, to: number])[];
}

/** Spreads the checks of several targets and replicas, as a part of the interval. */
const JITTER = 0.1;

/** Asks targets at intervals whether they can serve. */
export class HealthCheck {
  readonly #options: HealthOptions;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  /**
   * Checks one target, at once and then at every interval.
   *
   * @param decided called when enough checks in a row agree.
   * @returns a function that ends the checks.
   */
  start(origin: TargetOrigin, decided: (healthy: boolean, why: string) => void): () => void {
    const { interval, healthy, unhealthy } = this.#options;
    let row = 0;
    let stopped = false;
    let timer: NodeJS.Timeout | undefined;
    const round = async (): Promise<void> => {
      const fault = await this.#faultOf(origin);
      if (stopped) return;
      const passed = fault === undefined;
      row = passed ? Math.max(1, row + 1) : Math.min(-1, row - 1);
      if (row >= healthy) decided(true, "the health checks pass");
      if (row <= -unhealthy) decided(false, fault ?? "");
      const wait = interval * (1 + JITTER * (Math.random() - 0.5));
      timer = setTimeout(() => void round(), wait).unref();
    };
    void round();
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }

  /** What is wrong with a target; undefined if it is healthy. Never rejects. */
  async #faultOf(origin: TargetOrigin): Promise<string | undefined> {
    const { path, timeout, status } = this.#options;
    const limit = AbortSignal.timeout(timeout);
    try {
      const answer = await headOf(origin, path, limit);
      const { statusCode = 0 } = answer;
      answer.destroy();
      const expected = status.some(([from, to]) => statusCode >= from && statusCode <= to);
      return expected ? undefined : `health check: ${statusCode}`;
    } catch (error) {
      return `health check: ${limit.aborted ? "response_timeout" : failureReason(error)}`;
    }
  }
}
