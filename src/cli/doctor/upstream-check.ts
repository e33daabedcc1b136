import { originOf } from "../../upstream/pool/target-origin.ts";
import type { UpstreamOptions } from "../../upstream/pool/upstreams.ts";
import type { FindingGroup } from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";
import type { ReachOptions } from "./waiting.ts";

const HINTS: TlsHints = {
  authority: "set tls.caFile to the file of its authority",
  name: "set tls.serverName to a name that is in the certificate",
  client: "does it ask for a client certificate? Look at tls.certFile and tls.keyFile",
};

/** Checks every target of every upstream concurrently. */
export async function checkUpstreams(
  upstreams: readonly UpstreamOptions[],
  reaching: ReachOptions,
): Promise<FindingGroup> {
  const targets = upstreams.flatMap(({ name, targets: addresses, tls }) =>
    addresses.map((address) => ({ label: `${name} ${address}`, origin: originOf(address, tls) })),
  );
  const found = await Promise.all(
    targets.map(({ label, origin }) => reach(label, origin, reaching, HINTS)),
  );
  return { name: "upstreams", findings: found.flat() };
}
