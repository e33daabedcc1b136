import { statePlaceOf } from "../../app/sharing.ts";
import { examineStateServer } from "../../shared/examine.ts";
import type { StoreHint } from "../../credentials/stores/user-store.ts";
import { storeHint } from "./store-hints.ts";
import { bad, type Examined, type Finding, type FindingGroup, good, warning } from "./finding.ts";

/** What an operator can do about an error of Redis or a sentinel. */
const REDIS_HINTS: readonly StoreHint[] = [
  {
    reason: /^(?:WRONGPASS|NOAUTH)/,
    hint: "check the user in `url` and `password`; sentinels use `sentinel.password`",
  },
  {
    reason: /^NOPERM/,
    hint: "give the ACL user the permissions in docs/scale.md, for the keys with `prefix`",
  },
  { reason: /^MOVED/, hint: "set `cluster: true`" },
  {
    reason: /^READONLY/,
    hint: "`url` names a replica: name the primary, or set `sentinel`",
  },
  { reason: /^OOM/, hint: "its memory is full: raise maxmemory" },
  {
    reason: /^MISCONF/,
    hint: "it cannot write to its disk, and accepts no writes until it can",
  },
  {
    reason: /knows no primary/,
    hint: "compare `sentinel.name` with the output of `SENTINEL masters`",
  },
];

/**
 * Checks the server of `shared` in the same way as a replica uses it: connection, TLS, credentials, permissions and
 * latency. Returns no group if `shared` is not set.
 */
export async function checkStateServer({ snapshot, timeoutMs }: Examined): Promise<FindingGroup[]> {
  const { configuration, files } = snapshot;
  const { shared } = configuration;
  if (shared === undefined) return [];
  const report = await examineStateServer(statePlaceOf(shared, files), shared.prefix, timeoutMs);
  const { problem, answerMs = 0, version = "the server", address, eviction } = report;
  const where = address === undefined ? version : `${version} at ${address}`;
  const findings: Finding[] = [];
  if (problem !== undefined) {
    const hint = storeHint(problem, REDIS_HINTS, "see docs/scale.md");
    findings.push(bad(`redis: cannot be used: ${problem}`, hint));
  } else if (answerMs > shared.timeout) {
    const message = `redis: ${where} takes ${Math.round(answerMs)} ms to answer`;
    findings.push(warning(message, "shared.timeout is shorter, so a logout does not wait for it"));
  } else {
    findings.push(good(`redis: ${where} answers in ${Math.ceil(answerMs)} ms`));
  }
  if (eviction !== undefined && eviction !== "noeviction") {
    const message = `redis: with maxmemory-policy ${eviction}, it may lose revocations`;
    findings.push(warning(message, "set maxmemory-policy noeviction"));
  }
  return [{ name: "state server", findings }];
}
