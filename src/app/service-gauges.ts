import type { Metrics } from "../observe/metrics/metrics.ts";
import type { DrainState } from "../server/admin/state-pages.ts";
import type { RevocationService } from "../tokens/revocation/revocation-service.ts";
import { workersOf } from "./gate/from-configuration.ts";
import type { Logins } from "./gate/logins.ts";
import type { AllKeys } from "./keys/all-keys.ts";
import type { Sharing } from "./sharing.ts";
import type { Traffic, TrafficOptions } from "./traffic.ts";

/** Connects the gauges to the parts of a service. */
export function feedGauges(
  { gauges }: Metrics,
  {
    keys,
    assertionKeys,
    logins,
    revoking,
    sharing,
    traffic,
    options,
  }: AllKeys & {
    readonly logins: Logins;
    readonly revoking: Pick<RevocationService, "journalWritable">;
    readonly sharing: Sharing;
    readonly traffic: Traffic;
    readonly options: TrafficOptions;
  },
  service: { readonly state: DrainState; workersAlive(): number | undefined },
): void {
  const count = workersOf(options.configuration);
  gauges.loginQueueLength = logins.waiting;
  gauges.revocationsWritable = () => revoking.journalWritable;
  gauges.sharedState = () => sharing.state;
  gauges.storeState = logins.storeState;
  gauges.signingKey = () => keys.signer;
  gauges.assertionKey = () => assertionKeys.signer;
  gauges.draining = () => service.state !== "serving";
  gauges.bufferedBytes = () => options.buffered.bytes;
  gauges.workers = () => ({ count, alive: service.workersAlive() ?? count });
  gauges.tokenCacheEntries = traffic.tokenCacheEntries;
  gauges.upstreamLoad = traffic.upstreamLoad;
  gauges.targets = () => traffic.collect("targets");
  // With several threads, each thread has its own gauge.
  if (count === 1) gauges.issuers = () => traffic.issuers();
}
