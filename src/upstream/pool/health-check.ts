import { healthFault, healthQuery } from "../grpc/health.ts";
import { failureReason } from "../http/failures.ts";
import { sendQuery } from "../http2/query.ts";
import { headOf, probeQuery } from "./probe.ts";
import type { Target } from "./target.ts";
import type { HealthOptions } from "./upstream-options.ts";

type CheckedTarget = Pick<Target, "origin" | "pool" | "speaksHttp2">;

const DEFAULT_STATUS = [[200, 399]] as const;

/** Maximum number of bytes to read of a response. */
const MAX_BYTES = 1024;

/** Jitter that spreads the checks of several targets and replicas, as a fraction of the interval. */
const JITTER = 0.1;

/** This process had no socket left for the check. */
const NOT_CHECKED = "health check: resource_exhausted";

/** Checks targets at intervals. */
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
  start(target: CheckedTarget, decided: (healthy: boolean, why: string) => void): () => void {
    const { interval, healthy, unhealthy } = this.#options;
    let row = 0;
    let stopped = false;
    let timer: NodeJS.Timeout | undefined;
    const round = async (): Promise<void> => {
      const fault = await this.faultOf(target);
      if (stopped) return;
      const passed = fault === undefined;
      // A check that could not be made says nothing about the target.
      if (fault !== NOT_CHECKED) row = passed ? Math.max(1, row + 1) : Math.min(-1, row - 1);
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

  /** Resolves with why a target is unhealthy; undefined if it is healthy. Never rejects. */
  async faultOf(target: CheckedTarget): Promise<string | undefined> {
    const { kind, timeout, service = "" } = this.#options;
    const limit = AbortSignal.timeout(timeout);
    try {
      if (kind !== "grpc") return await this.#faultByHttp(target, limit);
      const query = healthQuery(target.origin, service);
      return healthFault(await sendQuery(target.pool, query, limit, MAX_BYTES));
    } catch (error) {
      return `health check: ${limit.aborted ? "response_timeout" : failureReason(error)}`;
    }
  }

  async #faultByHttp(target: CheckedTarget, limit: AbortSignal): Promise<string | undefined> {
    const { path = "/", status = DEFAULT_STATUS } = this.#options;
    const statusCode = await statusOf(target, path, limit);
    const expected = status.some(([from, to]) => statusCode >= from && statusCode <= to);
    return expected ? undefined : `health check: ${statusCode}`;
  }
}

/** Checks an HTTP/1.1 target over a separate connection, and an HTTP/2 target over the connections of its requests. */
async function statusOf(
  { origin, pool, speaksHttp2 }: CheckedTarget,
  path: string,
  limit: AbortSignal,
): Promise<number> {
  if (speaksHttp2)
    return (await sendQuery(pool, probeQuery(origin, path), limit, MAX_BYTES)).status;
  const answer = await headOf(origin, path, limit);
  answer.destroy();
  return answer.statusCode ?? 0;
}
