import type { UpstreamOptions } from "../../src/upstream/pool/upstreams.ts";

/** What an upstream has whose configuration names targets alone, except for its limits and times. */
export const UPSTREAM_DEFAULTS: Pick<UpstreamOptions, "protocol" | "balance" | "ejection"> = {
  protocol: "http1",
  balance: "roundRobin",
  ejection: { failures: 5, for: 30_000, most: 0.5 },
};
