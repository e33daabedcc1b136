import { Gauge } from "prom-client";
import type { TargetState } from "../../core/request/forwarder.ts";
import type { DefineMetric } from "./counters.ts";

/** Metrics of each target, of each address of a name too, read on a scrape. Those of several threads are one already. */
export function showTargets(
  define: DefineMetric,
  read: () => Promise<readonly TargetState[]>,
): void {
  const { registry, ...head } = define(
    "upstream_target_available",
    "1 while requests go to the target, 0 while it is left out.",
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
