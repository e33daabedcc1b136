import { upstreamsOf } from "../../app/from-configuration.ts";
import type { Configuration } from "../../config/schema.ts";
import { originOf } from "../../upstream/target.ts";
import type { FindingGroup } from "./finding.ts";
import { reach } from "./reach.ts";
import type { TlsHints } from "./tls.ts";
import type { Reaching } from "./waiting.ts";

const HINTS: TlsHints = {
  authority: "name the file of its authority in tls.caFile",
  name: "set tls.serverName to a name that is in the certificate",
  client: "does it ask for a client certificate? Look at tls.certFile and tls.keyFile",
};

/** Every target of every upstream, all at the same time. */
export async function lookAtUpstreams(
  configuration: Configuration,
  reaching: Reaching,
): Promise<FindingGroup> {
  const targets = upstreamsOf(configuration).flatMap(({ name, targets: addresses, tls }) =>
    addresses.map((address) => ({ label: `${name} ${address}`, origin: originOf(address, tls) })),
  );
  const found = await Promise.all(
    targets.map(({ label, origin }) => reach(label, origin, reaching, HINTS)),
  );
  return { name: "upstreams", findings: found.flat() };
}
