import { TimeoutEntry } from "../../lib/async/timeout-list.ts";
import type { ConnectionPool } from "../http/connection.ts";
import { openPool } from "./open-pool.ts";
import type { TargetOrigin } from "./target-origin.ts";
import type { UpstreamOptions } from "./upstreams.ts";

/** One backend address with its connections. */
export interface Target {
  /** As configured, or that of a name; for logs. */
  readonly address: string;
  readonly pool: ConnectionPool;
  /** Whether requests may reach it over HTTP/2. */
  readonly speaksHttp2: boolean;
  /** The maximum number of requests in flight, and how many of them any requester may send. */
  readonly connections: number;
  readonly unreserved: number;
  /** Requests in flight. */
  inFlight: number;
  /** Its share of the requests, compared with the other targets. */
  readonly weight: number;
  /** State of the balancer `roundRobin`. */
  credit: number;
  /** Whether it is used, as long as any target is. */
  available: boolean;
  healthy: boolean;
  ejected: boolean;
  /** Ejections since it last served a request. */
  ejections: number;
  /** Failures in a row. */
  failures: number;
  /** When the head of an answer last arrived, and since when it is used again; monotonic milliseconds. */
  answeredAt: number;
  backSince: number | undefined;
  /**
   * Set while it has not answered since it was ejected: it gets one request at a time, and until this time (monotonic
   * milliseconds) only requests that may be repeated.
   */
  trialUntil: number | undefined;
  /** When it was reported that it answers nothing, in monotonic milliseconds; undefined if it answers. */
  silentAt: number | undefined;
  /** Its name no longer has this address, so it takes no more requests. */
  gone: boolean;
  readonly origin: TargetOrigin;
}

/** A request that waits for the head of its answer while the response timeout of its upstream runs. */
export abstract class SentRequest extends TimeoutEntry {
  /** Undefined while it has no slot at a target. */
  abstract readonly target: Target | undefined;
  /** Whether it waits for its backend, not for the rest of what its client sends. */
  abstract readonly waitsForBackend: boolean;
}

/**
 * The fraction of the slots that is reserved for requesters with few slots: one in this many. So a client that takes all
 * other slots, or stalls them by not reading, keeps no one out.
 */
const RESERVED_FRACTION = 8;

/** Creates a target. Connections open on demand. @param address for logs. */
export function createTarget(
  address: string,
  origin: TargetOrigin,
  {
    connections,
    protocol,
    timeouts,
  }: Pick<UpstreamOptions, "connections" | "protocol" | "timeouts">,
  weight = 1,
): Target {
  return {
    address,
    pool: openPool(origin, protocol, timeouts.connect),
    connections,
    inFlight: 0,
    origin,
    unreserved: connections - Math.floor(connections / RESERVED_FRACTION),
    speaksHttp2: protocol !== "http1",
    weight,
    credit: 0,
    available: true,
    healthy: true,
    ejected: false,
    ejections: 0,
    failures: 0,
    answeredAt: -Infinity,
    backSince: undefined,
    trialUntil: undefined,
    silentAt: undefined,
    gone: false,
  };
}

/** Returns the state of a target, for people and metrics. @param oldestMs see `TargetState`. */
export function stateOf(
  { name, protocol }: UpstreamOptions,
  { address, pool: { negotiated }, weight, inFlight, healthy, ejected, failures }: Target,
  oldestMs: number,
): TargetState {
  const state = healthy ? (ejected ? "ejected" : "available") : "unhealthy";
  const load = { weight, inFlight, oldestMs, failures };
  return { upstream: name, target: address, protocol, negotiated, state, ...load };
}

/** The state of one target. */
export interface TargetState {
  readonly upstream: string;
  readonly target: string;
  /** As configured. */
  readonly protocol: string;
  /** The protocol that TLS negotiated, if it is negotiated; undefined before the first connection. */
  readonly negotiated?: string | undefined;
  readonly state: "available" | "ejected" | "unhealthy";
  readonly weight: number;
  /** Requests in flight. */
  readonly inFlight: number;
  /** How long the oldest of them has waited for the head of its answer, in milliseconds; 0 if none waits. */
  readonly oldestMs: number;
  /** Consecutive failures. */
  readonly failures: number;
}
