import { usersFilesIn } from "../../app/from-files.ts";
import { NOOP_LOG } from "../../app/explanation/no-op.ts";
import { HashingPool } from "../../credentials/hashing/hashing-pool.ts";
import {
  storeKindOf,
  openUserStore,
  type StoreSettings,
} from "../../credentials/stores/store-kinds.ts";
import type { OpenUserStore } from "../../credentials/stores/user-store.ts";
import { systemClock } from "../../lib/clock.ts";
import {
  bad,
  type Examined,
  type Finding,
  type FindingGroup,
  good,
  groupUnlessEmpty,
  warning,
} from "./finding.ts";
import { storeHint } from "./store-hints.ts";

/**
 * Looks up a name in each remote store, which checks connection, TLS, credentials and query. Returns no group if there
 * is no such store.
 */
export async function checkUserStores({ snapshot, timeoutMs }: Examined): Promise<FindingGroup[]> {
  const { configuration, files } = snapshot;
  // No user has the name that is looked up, so no hash is verified.
  const verifier = new HashingPool({ concurrency: 1, queue: 1 });
  const look = async (settings: StoreSettings): Promise<readonly Finding[]> => {
    const context = { contentOf: usersFilesIn(files), log: NOOP_LOG, verifier };
    const store = await openUserStore(settings, { ...context, clock: systemClock, queue: 1 });
    try {
      return await findingsOf(settings, store, timeoutMs);
    } finally {
      await store.close();
    }
  };
  try {
    const findings = await Promise.all(configuration.users.map(look));
    return groupUnlessEmpty("user stores", findings.flat());
  } finally {
    await verifier.close();
  }
}

async function findingsOf(
  settings: StoreSettings,
  { examine, doubts }: OpenUserStore,
  timeoutMs: number,
): Promise<readonly Finding[]> {
  if (examine === undefined) return [];
  const { kind } = settings;
  const began = performance.now();
  const problem = await examine(timeoutMs);
  const tookMs = Math.round(performance.now() - began);
  if (problem !== undefined) {
    const hint = storeHint(problem, storeKindOf(settings).hints ?? [], "see docs/users.md");
    return [bad(`${kind}: is unavailable: ${problem}`, hint)];
  }
  const doubtful = (await doubts?.(timeoutMs)) ?? [];
  return [
    answersIn(settings, tookMs),
    ...doubtful.map(({ doubt, hint }) => warning(`${kind}: ${doubt}`, hint)),
  ];
}

/**
 * A login queries a remote store two or three times, over open connections. The answer measured here is the first one
 * on a new connection, which is the slowest.
 */
function answersIn(settings: StoreSettings, tookMs: number): Finding {
  const answers = `${settings.kind}: answers in ${tookMs} ms`;
  if (!("timeout" in settings) || tookMs < settings.timeout / 2) return good(answers);
  const hint = `logins get 503 after the \`timeout\` of ${settings.timeout} ms: raise it, or find out why the store is slow`;
  return warning(answers, hint);
}
