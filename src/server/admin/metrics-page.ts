import type { AdminResponse, AdminPage, AdminRequest } from "../../core/admin-page.ts";
import { systemClock } from "../../lib/clock.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";

const OPEN_METRICS = "application/openmetrics-text";
const OPEN_METRICS_TYPE = `${OPEN_METRICS}; version=1.0.0; charset=utf-8`;

/**
 * How long peers outside `admin.allow` share one text, in milliseconds. Creating it takes several milliseconds, and
 * anyone who reaches the port may scrape at any rate.
 */
const CACHE_MS = 1_000;

/**
 * `/metrics`. Concurrent scrapes share one text.
 *
 * @param openText returns the same in the OpenMetrics format, for clients that request it; undefined if not supported.
 */
export function metricsPage(
  text: () => Promise<string>,
  type: string,
  openText: () => Promise<string> | undefined = () => undefined,
): AdminPage {
  const scrapes = new SingleFlight<AdminResponse>();
  const cache = new Map<string, { answer: Promise<AdminResponse>; until: number }>();

  async function scrape(format: string): Promise<AdminResponse> {
    const opened = format === OPEN_METRICS ? openText() : undefined;
    const body = Buffer.from(await (opened ?? text()));
    return { status: 200, type: opened === undefined ? type : OPEN_METRICS_TYPE, body };
  }

  function recent(format: string): Promise<AdminResponse> {
    const before = cache.get(format);
    if (before !== undefined && systemClock.monotonic() < before.until) return before.answer;
    const answer = scrapes.run(format, () => scrape(format));
    cache.set(format, { answer, until: systemClock.monotonic() + CACHE_MS });
    // A failure is not cached.
    answer.catch(() => cache.delete(format));
    return answer;
  }

  return {
    path: "/metrics",
    method: "GET",
    audience: "everybody",
    answer({ headers, allowed }: AdminRequest) {
      const format = headers.accept?.includes(OPEN_METRICS) === true ? OPEN_METRICS : "text";
      return allowed ? scrapes.run(format, () => scrape(format)) : recent(format);
    },
  };
}
