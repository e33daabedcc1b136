import type { Configuration } from "../config/configuration.ts";
import type { Configured, SnapshotFiles } from "../config/snapshot.ts";
import { readAuthorities } from "../server/tls/certificate.ts";
import { SharedState, type SharedStateOptions } from "../shared/shared-state.ts";
import {
  addressIn,
  SENTINEL_PORT,
  type StatePlace,
  stateServerAt,
} from "../shared/state-server.ts";
import type { RevocationService } from "../tokens/revocation/revocation-service.ts";
import type { Logins } from "./gate/logins.ts";

/** The state that replicas share; all parts are undefined if the configuration has no `shared`. */
export type Sharing = ReturnType<typeof openSharing>;

/** Prepares sharing according to `shared`, without connecting yet. @throws ConfigError if `caFile` cannot be read. */
export function openSharing(
  { configuration, files }: Configured,
  observation: Pick<SharedStateOptions, "log" | "clock" | "observer">,
) {
  const { shared } = configuration;
  const { log, clock, observer } = observation;
  const state =
    shared &&
    new SharedState({
      place: statePlaceOf(shared, files),
      prefix: shared.prefix,
      timeout: shared.timeout,
      log,
      clock,
      observer,
    });
  const shares = new Set(shared?.share);
  return {
    state,
    attempts: shares.has("throttle") ? state : undefined,
    revoke: shares.has("revocation") ? state?.revoke : undefined,
    limits: {
      settleRates: shares.has("rateLimits") ? state?.settleRates : undefined,
      settleConcurrency: shares.has("concurrency") ? state?.settleConcurrency : undefined,
      rememberProof: shares.has("proofs") ? state?.rememberProof : undefined,
    },
    /** Connects to the server. Resolves once the state of the other replicas has arrived, or after a second. */
    async begin(logins: Logins, revoking: RevocationService): Promise<void> {
      const revokes = shares.has("revocation");
      await state?.begin(
        {
          attemptEnded: shares.has("throttle") ? logins.attemptEnded : () => undefined,
          revoked: revokes ? (some) => revoking.arrived(some) : () => undefined,
        },
        () => (revokes ? revoking.list.added().filter(({ until }) => until > clock.now()) : []),
      );
    },
  };
}

/** Returns the servers that `shared` names. @throws ConfigError if their authorities cannot be read. */
export function statePlaceOf(
  { url, password, caFile, nodes, cluster, sentinel }: NonNullable<Configuration["shared"]>,
  files: Pick<SnapshotFiles, "text">,
): StatePlace {
  const authorities = caFile === undefined ? undefined : readAuthorities(caFile, files.text);
  const usualPort = sentinel === undefined ? undefined : SENTINEL_PORT;
  return {
    server: stateServerAt(url, { password, authorities }, usualPort),
    nodes: nodes.flatMap((node) => addressIn(node) ?? []),
    cluster,
    ...(sentinel && { sentinel }),
  };
}
