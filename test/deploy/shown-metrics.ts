import { ask } from "../support/ask.ts";
import { startEchoBackend } from "../support/echo-backend.ts";
import { startKeySetServer } from "../support/foreign-keys.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";
import { METHODS } from "../../src/observe/metrics/event-metrics.ts";

/** The metrics of a running Sallyport: names for queries, and the values of each label. */
export interface ShownMetrics {
  readonly names: ReadonlySet<string>;
  /** By the name of a series (`…_bucket` for a histogram's buckets), then by label. */
  readonly labels: ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;
}

/** Starts Sallyport with TLS, sends requests, and reads its metrics: queries cannot use anything else. */
export async function shownMetrics(): Promise<ShownMetrics> {
  await using backend = await startEchoBackend();
  await using keys = await startKeySetServer(() => []);
  const issuer = "https://id.example.com";
  const trusted = [{ issuer, audience: "orders", algorithms: ["ES256"], jwks: keys.url }];
  const authorization = { opa: { kind: "http", url: `${backend.url}/opa` } };
  const upstreams = { shadow: { targets: [backend.url] } };
  const mirror = { upstream: "shadow" };
  const routes = [{ name: "everything", path: "/", upstream: "app", mirror }];
  await using gate = await startSallyport({
    target: backend.url,
    config: { tokens: { trusted }, authorization, upstreams, routes },
  });
  await until(() => keys.asked() > 0);
  await ask(gate, "/orders", { token: gate.token });
  const { series, text } = await scrape(gate);
  const labels = new Map<string, Map<string, Set<string>>>();
  for (const each of series) {
    const [, name = "", inside = ""] = /^(\w+)(?:\{(.*)\})?$/s.exec(each) ?? [];
    const known = labels.get(name) ?? new Map<string, Set<string>>();
    labels.set(name, known);
    for (const [, label = "", value = ""] of inside.matchAll(/(\w+)="([^"]*)"/g)) {
      known.set(label, (known.get(label) ?? new Set<string>()).add(value));
    }
  }
  // A method is exported once a request has used it.
  labels.get("sallyport_http_requests_total")?.set("method", new Set(METHODS));
  const declared = [...text.matchAll(/^# TYPE (\w+) (\w+)$/gm)].flatMap(([, name = "", type]) =>
    type === "histogram" ? [`${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
  );
  return { names: new Set(declared), labels };
}
