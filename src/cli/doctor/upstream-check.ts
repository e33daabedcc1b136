import { isIP } from "node:net";
import { upstreamsOf } from "../../app/from-files.ts";
import { remoteFailure } from "../../lib/text/error-code.ts";
import { healthFaultOf } from "../../upstream/pool/health-check.ts";
import { Target } from "../../upstream/pool/target.ts";
import { originOf, type TargetOrigin } from "../../upstream/pool/target-origin.ts";
import type { UpstreamOptions } from "../../upstream/pool/upstreams.ts";
import { lookupFor } from "../../upstream/resolve/lookup.ts";
import { bad, type Examined, type Finding, good, type ReachOptions, within } from "./finding.ts";
import { reach, type TlsHints } from "./reach.ts";

const HINTS: TlsHints = {
  authority: "set tls.caFile to the certificate of its authority",
  name: "set tls.serverName to a name in the certificate",
  client: "does it require a client certificate? Set tls.certFile and tls.keyFile",
};

/**
 * Checks all targets of all upstreams concurrently. With `resolve`, checks each address of a target. With `health`,
 * also sends the request of the health check: a backend that hangs accepts connections.
 */
export async function checkUpstreams(examined: Examined): Promise<Finding[]> {
  const { configuration, files } = examined.snapshot;
  const found = await Promise.all(
    upstreamsOf(configuration, files.text).flatMap((upstream) =>
      upstream.targets.map((address) => checkTarget(upstream, address, examined)),
    ),
  );
  return found.flat();
}

async function checkTarget(
  upstream: UpstreamOptions,
  address: string,
  reaching: ReachOptions,
): Promise<Finding[]> {
  const label = `${upstream.name} ${address}`;
  const origin = originOf(address, upstream.tls);
  const { resolve } = upstream;
  if (resolve === undefined || origin.socketPath !== undefined || isIP(origin.hostname) !== 0) {
    return checkOrigin(upstream, label, origin, reaching);
  }
  const lookup = within(lookupFor(resolve)(origin.hostname), reaching.timeoutMs);
  const addresses = await lookup.then((found) => found.addresses, remoteFailure);
  if (typeof addresses === "string" || addresses.length === 0) {
    const why = typeof addresses === "string" ? addresses : "no address";
    const hint = "check the name, resolve.servers, and the DNS of this machine or pod";
    return [bad(`${label}: ${origin.hostname} does not resolve (${why})`, hint)];
  }
  const found = await Promise.all(
    addresses.map((each) =>
      checkOrigin(upstream, `${label} at ${each}`, { ...origin, hostname: each }, reaching),
    ),
  );
  return found.flat();
}

async function checkOrigin(
  upstream: UpstreamOptions,
  label: string,
  origin: TargetOrigin,
  reaching: ReachOptions,
): Promise<Finding[]> {
  const { health, protocol } = upstream;
  const findings = await reach(label, origin, { ...reaching, hints: HINTS, protocol });
  if (health === undefined || findings.some(({ result }) => result === "bad")) return findings;
  const target = new Target(label, origin, upstream);
  const fault = await healthFaultOf(target, health);
  await target.pool.close();
  const hint = "check the backend, health.path and health.status";
  const last = fault === undefined ? good(`${label}: is healthy`) : bad(`${label}: ${fault}`, hint);
  return [...findings, last];
}
