import { usersFilesIn } from "../../app/from-files.ts";
import { NOOP_LOG } from "../../app/explanation/dry-run-gate.ts";
import { HashingPool } from "../../credentials/hashing/hashing-pool.ts";
import {
  openUserStore,
  storeKindOf,
  type StoreSettings,
} from "../../credentials/stores/store-kinds.ts";
import type { OpenUserStore, StoreHint } from "../../credentials/stores/user-store.ts";
import { remoteFailure } from "../../lib/text/error-code.ts";
import { readAuthorities } from "../../server/tls/certificate.ts";
import { keyStoreKindOf } from "../../tokens/api-keys/key-store-kinds.ts";
import { systemClock } from "../../lib/clock.ts";
import { bad, type Examined, type Finding, good, warning } from "./finding.ts";

/** What an operator can do if the connection to a user store or a state server fails. */
const CONNECTION_HINTS: readonly StoreHint[] = [
  [/^ECONNREFUSED/, "is the server running and listening at this address and port?"],
  [/^(?:ENOTFOUND|EAI_AGAIN)/, "check the host in `url`, and the DNS of this machine or pod"],
  [/^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)/, "does a firewall or NetworkPolicy let this through?"],
  [/ALTNAME/, "the certificate does not match the name in `url`"],
  [/EXPIRED|NOT_YET_VALID/, "renew the server's certificate, or set the clock of this machine"],
  [/SELF_SIGNED|VERIFY|ISSUER/, "set `caFile` to the certificate of its authority"],
  [/ERR_SSL|^EPROTO|ECONNRESET/, "does this port speak TLS, and does the scheme of `url` match?"],
  [
    /\btime|timeout|^Connection terminated/i,
    "the server hangs or is slow, or a firewall drops the connection: raise `timeout` if it needs longer",
  ],
];

/**
 * Returns what an operator can do about a user store or a state server that is unavailable, in one line.
 *
 * @param own the hints of this kind of server.
 * @param otherwise the hint if none matches.
 */
export function storeHint(reason: string, own: readonly StoreHint[], otherwise: string): string {
  const fitting = [...CONNECTION_HINTS, ...own].find(([problem]) => problem.test(reason));
  return fitting?.[1] ?? otherwise;
}

/** Looks up a name in each remote store, which checks connection, TLS, credentials and query. */
export async function checkUserStores({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
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
    return (await Promise.all(configuration.users.map(look))).flat();
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

/** Reads each table of API keys once, which checks connection, TLS, credentials, query and keys. */
export async function checkKeyStores({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const { configuration, files } = snapshot;
  const looks = configuration.apiKeys.map(async (settings): Promise<Finding[]> => {
    const { open, hints = [] } = keyStoreKindOf(settings);
    if (open === undefined || settings.kind === "file") return [];
    const { kind, caFile } = settings;
    const authorities = caFile === undefined ? undefined : readAuthorities(caFile, files.text);
    const table = open({ ...settings, timeout: timeoutMs }, authorities);
    const began = performance.now();
    try {
      const { rows = [] } = (await table.readUnless("")) ?? {};
      const tookMs = Math.round(performance.now() - began);
      return [good(`${kind}: ${rows.length} API keys, answers in ${tookMs} ms`)];
    } catch (error) {
      const problem = remoteFailure(error);
      const hint = storeHint(problem, hints, "see docs/reference/configuration.md");
      return [bad(`${kind}: the API keys cannot be read: ${problem}`, hint)];
    } finally {
      await table.close();
    }
  });
  return (await Promise.all(looks)).flat();
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
