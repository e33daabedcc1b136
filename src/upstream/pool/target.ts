import { TimeoutEntry } from "../../lib/async/timeout-list.ts";
import type { ConnectionPool } from "../http/connection.ts";
import { openPool } from "./open-pool.ts";
import type { TargetOrigin } from "./target-origin.ts";
import type { UpstreamOptions } from "./upstreams.ts";

/**
 * The fraction of the slots that is reserved for requesters with few slots: one in this many. So a client that takes all
 * other slots, or stalls them by not reading, keeps no one out.
 */
const RESERVED_FRACTION = 8;

/** One backend address with its connections, which open on demand. */
export class Target {
  /** As configured, or that of a name; for logs. */
  readonly address: string;
  readonly origin: TargetOrigin;
  readonly pool: ConnectionPool;
  /** Whether requests may reach it over HTTP/2. */
  readonly speaksHttp2: boolean;
  /** The maximum number of requests in flight, and how many of them any requester may send. */
  readonly connections: number;
  readonly unreserved: number;
  /** Its share of the requests, compared with the other targets. */
  readonly weight: number;
  /** Requests in flight. */
  inFlight = 0;
  /** State of the balancer `roundRobin`. */
  credit = 0;
  /** Whether it is used, as long as any target is. */
  available = true;
  healthy = true;
  ejected = false;
  /** Ejections since it last served a request. */
  ejections = 0;
  /** Failures in a row. */
  failures = 0;
  /** When the head of an answer last arrived, and since when it is used again; monotonic milliseconds. */
  answeredAt = -Infinity;
  backSince: number | undefined;
  /**
   * Set while it has not answered since it was ejected: it gets one request at a time, and until this time (monotonic
   * milliseconds) only requests that may be repeated.
   */
  trialUntil: number | undefined;
  /** When it was reported that it answers nothing, in monotonic milliseconds; undefined if it answers. */
  silentAt: number | undefined;
  /** Its name no longer has this address, so it takes no more requests. */
  gone = false;

  constructor(
    address: string,
    origin: TargetOrigin,
    { connections, protocol, timeouts }: UpstreamOptions,
    weight = 1,
  ) {
    this.address = address;
    this.origin = origin;
    this.pool = openPool(origin, protocol, timeouts.connect);
    this.speaksHttp2 = protocol !== "http1";
    this.connections = connections;
    this.unreserved = connections - Math.floor(connections / RESERVED_FRACTION);
    this.weight = weight;
  }
}

/** A request that waits for the head of its answer while the response timeout of its upstream runs. */
export abstract class SentRequest extends TimeoutEntry {
  /** Undefined while it has no slot at a target. */
  abstract readonly target: Target | undefined;
  /** Whether it waits for its backend, not for the rest of what its client sends. */
  abstract readonly waitsForBackend: boolean;
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
