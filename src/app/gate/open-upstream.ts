import { Upstream, type UpstreamOptions } from "../../upstream/pool/upstreams.ts";
import type { GateOptions } from "./open-gate.ts";

/** Opens an upstream. Where there are no clients, nothing is asked of its targets. */
export function openUpstream(
  { clock, log, observer, buffered }: GateOptions,
  options: UpstreamOptions,
): Upstream {
  const upstream = new Upstream(options, clock, {
    targetChanged(name, target, available, why) {
      const fields = { upstream: name, target, why };
      if (available) {
        log.info("a target is used again", fields);
        return;
      }
      observer.targetLeftOut(name);
      log.warn("a target is left out", fields);
    },
  });
  if (buffered !== undefined) upstream.startChecks();
  return upstream;
}
