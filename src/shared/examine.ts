import { FIRST_ID, GREET } from "./state-feed.ts";
import { locate, type StatePlace } from "./state-server.ts";
import { DEADLINE_MS, StateConnection, whyUnavailable } from "./state-connection.ts";
import { keysFor } from "./wire.ts";

/** The report of `doctor` about a state server. */
export interface StateServerReport {
  /** Why the server cannot be used, in words for an operator; undefined if it can. */
  readonly problem?: string;
  /** The time until a response, in milliseconds. */
  readonly answerMs?: number;
  /** The address that the sentinels or the cluster returned. */
  readonly address?: string;
  /** The product and the version that the server reports. */
  readonly version?: string;
  /** Which keys the server evicts when its memory is full; `noeviction` for none. */
  readonly eviction?: string;
}

/** Connects to a state server and runs the same script as a replica. Never rejects. */
export async function examineStateServer(
  place: StatePlace,
  prefix: string,
  timeoutMs: number,
): Promise<StateServerReport> {
  let connection: StateConnection | undefined;
  try {
    const { probe, mark, events, revocations, filled } = keysFor(prefix);
    const deadlineMs = Math.max(timeoutMs, DEADLINE_MS);
    const server = await locate(place, probe, deadlineMs);
    connection = await StateConnection.open(server, deadlineMs);
    const keys = [probe, mark, events, revocations, filled];
    await connection.run(GREET, keys, ["doctor", FIRST_ID]);
    const began = performance.now();
    await connection.run(GREET, keys, ["doctor", FIRST_ID]);
    const answerMs = performance.now() - began;
    // A replica does not need this permission.
    const said = await connection.call("INFO").catch(() => "");
    const address = `${server.host}:${server.port}`;
    const found = server === place.server ? {} : { address };
    return { answerMs, ...found, ...about(String(said)) };
  } catch (error) {
    return { problem: whyUnavailable(error) };
  } finally {
    connection?.close();
  }
}

function about(info: string): Pick<StateServerReport, "version" | "eviction"> {
  const field = (name: string): string | undefined =>
    new RegExp(`^${name}:([\\w.-]{1,40})\\r?$`, "m").exec(info)?.[1];
  const [valkey, redis] = [field("valkey_version"), field("redis_version")];
  const version = valkey === undefined ? redis && `Redis ${redis}` : `Valkey ${valkey}`;
  const eviction = field("maxmemory_policy");
  return { ...(version !== undefined && { version }), ...(eviction !== undefined && { eviction }) };
}
