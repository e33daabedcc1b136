import type { Log } from "../../core/log.ts";
import type { Observer } from "../../core/observer.ts";
import { Upstream } from "../../upstream/pool/upstreams.ts";
import type { UpstreamEvents, UpstreamOptions } from "../../upstream/pool/upstream-options.ts";
import type { GateOptions } from "./gate-options.ts";

/** Opens an upstream. In a gate without clients, it sends no health checks to its targets. */
export function openUpstream(
  { clock, log, observer, buffered }: GateOptions,
  options: UpstreamOptions,
): Upstream {
  const upstream = new Upstream(options, clock, tellTargets(log, observer));
  if (buffered !== undefined) upstream.start();
  return upstream;
}

/**
 * Logs and counts the events of targets. For each name, logs when lookups begin to fail, and when they succeed again.
 */
function tellTargets(log: Log, observer: Observer): UpstreamEvents {
  const unknown = new Set<string>();
  return {
    targetChanged(upstream, target, available, why) {
      const fields = { upstream, target, why };
      if (available) {
        log.info("a target is used again", fields);
        return;
      }
      observer.targetLeftOut(upstream);
      log.warn("a target is left out", fields);
    },
    targetResolved(upstream, target, addresses) {
      const fields = { upstream, target, addresses: addresses.join(" ") };
      if (addresses.length > 0) log.info("a target has other addresses", fields);
      else log.error("a target has no address any more", fields);
    },
    targetLookedUp(upstream, target, fault) {
      observer.targetLookedUp(upstream, fault === undefined);
      if (fault === undefined) {
        if (unknown.delete(target)) log.info("a target is found again", { upstream, target });
      } else if (!unknown.has(target)) {
        unknown.add(target);
        log.warn("the name of a target cannot be resolved", { upstream, target, why: fault });
      }
    },
  };
}
