import type { AdminPage, AdminRequest } from "../core/admin-page.ts";
import { SingleFlight } from "../lib/single-flight.ts";

const OPEN_METRICS = "application/openmetrics-text";
const OPEN_METRICS_TYPE = `${OPEN_METRICS}; version=1.0.0; charset=utf-8`;

/**
 * `/metrics`; scrapes at the same time share one text.
 *
 * @param openText the same as OpenMetrics, for those who ask for it; undefined while there is none.
 */
export function metricsPage(
  text: () => Promise<string>,
  type: string,
  openText: () => Promise<string> | undefined = () => undefined,
): AdminPage {
  const scrapes = new SingleFlight<string>();
  return {
    path: "/metrics",
    method: "GET",
    audience: "everybody",
    async answer({ headers }: AdminRequest) {
      const opened = headers.accept?.includes(OPEN_METRICS) === true ? openText() : undefined;
      if (opened !== undefined) return { status: 200, type: OPEN_METRICS_TYPE, body: await opened };
      return { status: 200, type, body: await scrapes.run("metrics", text) };
    },
  };
}
