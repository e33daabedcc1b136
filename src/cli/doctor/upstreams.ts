import { upstreamsOf } from "../../app/from-configuration.ts";
import type { Configuration } from "../../config/schema.ts";
import { createTarget } from "../../upstream/target.ts";
import type { FindingGroup } from "./finding.ts";
import { reach, type Reaching } from "./reach.ts";

/** Every target of every upstream, all at the same time. */
export async function lookAtUpstreams(
  configuration: Configuration,
  reaching: Reaching,
): Promise<FindingGroup> {
  const targets = upstreamsOf(configuration).flatMap(({ name, targets: addresses, ...upstream }) =>
    addresses.map((address) => ({
      label: `${name} ${address}`,
      origin: createTarget({ ...upstream, address }).origin,
    })),
  );
  const found = await Promise.all(
    targets.map(({ label, origin }) => reach(label, origin, reaching)),
  );
  return { name: "upstreams", findings: found.flat() };
}
