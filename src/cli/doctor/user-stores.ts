import { usersFilesIn } from "../../app/from-files.ts";
import { NOOP_LOG } from "../../app/explanation/no-op.ts";
import type { Snapshot } from "../../config/snapshot.ts";
import { HashingPool } from "../../credentials/hashing/hashing-pool.ts";
import { openUserStore, type StoreSettings } from "../../credentials/stores/store-kinds.ts";
import { systemClock } from "../../lib/clock.ts";
import { bad, type Finding, type FindingGroup, good } from "./finding.ts";

/** Asks each store that is somewhere else for a name: reachable, TLS, credentials, query. No group without such stores. */
export async function checkUserStores(
  { configuration, files }: Pick<Snapshot, "configuration" | "files">,
  timeoutMs: number,
): Promise<readonly FindingGroup[]> {
  // It verifies nothing: a name that nobody has shows no hash.
  const verifier = new HashingPool({ concurrency: 1, queue: 1 });
  const look = async (settings: StoreSettings): Promise<readonly Finding[]> => {
    const context = { contentOf: usersFilesIn(files), log: NOOP_LOG, verifier };
    const store = await openUserStore(settings, { ...context, clock: systemClock, queue: 1 });
    try {
      if (store.examine === undefined) return [];
      const began = performance.now();
      const problem = await store.examine(timeoutMs);
      const took = Math.round(performance.now() - began);
      return problem === undefined
        ? [good(`${settings.kind}: answers in ${took} ms`)]
        : [bad(`${settings.kind}: cannot be asked: ${problem}`, "see docs/users.md")];
    } finally {
      await store.close();
    }
  };
  try {
    const findings = (await Promise.all(configuration.users.map(look))).flat();
    return findings.length === 0 ? [] : [{ name: "user stores", findings }];
  } finally {
    await verifier.close();
  }
}
