import { Gauge } from "prom-client";
import type { TargetState } from "../../core/request/forwarder.ts";
import type { DefineMetric } from "./counters.ts";

/**
 * Registers the metrics of each target, read on a scrape. Each address of a resolved name is a target. `read` returns
 * the states of all threads already combined.
 */
export function showTargets(
  define: DefineMetric,
  read: () => Promise<readonly TargetState[]>,
): void {
  const { registry, ...head } = define(
    "upstream_target_available",
    "1 while the target is used, 0 while it is left out.",
    ...["upstream", "target", "protocol"],
  );
  new Gauge({
    ...{ ...head, aggregator: "min", registers: [registry] },
    async collect() {
      const states = await read();
      this.reset();
      for (const { upstream, target, protocol, negotiated = protocol, state } of states) {
        this.set({ upstream, target, protocol: negotiated }, Number(state === "available"));
      }
    },
  });
}
