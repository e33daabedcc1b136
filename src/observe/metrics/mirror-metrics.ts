import type { Observer } from "../../core/observer.ts";
import { MIRROR_RESULTS } from "../../core/route/mirror.ts";
import { type DefineMetric, increment, slotCounter } from "./counters.ts";

interface MirrorMetrics extends Pick<Observer, "requestMirrored"> {
  /** Adds the upstreams that a new configuration mirrors to. */
  addMirrors(upstreams: readonly string[]): void;
}

/** Defines the metrics of mirrored requests. Does not count those for an unknown upstream. */
export function mirrorMetrics(define: DefineMetric, configured: readonly string[]): MirrorMetrics {
  const slots = new Map<string, number>();
  const help = "Copies of requests to a mirror, by result.";
  const copies = slotCounter(define("mirrored_requests_total", help, "upstream", "result"), []);
  const addMirrors = (upstreams: readonly string[]): void => {
    const more = upstreams.filter((upstream) => !slots.has(upstream));
    for (const upstream of more) slots.set(upstream, slots.size);
    copies.add(more.flatMap((upstream) => MIRROR_RESULTS.map((result) => ({ upstream, result }))));
  };
  addMirrors(configured);
  return {
    addMirrors,
    requestMirrored(upstream, result) {
      const slot = slots.get(upstream);
      if (slot === undefined) return;
      increment(copies.counts, slot * MIRROR_RESULTS.length + MIRROR_RESULTS.indexOf(result));
    },
  };
}
