import type { ResolveOptions } from "../resolve/lookup.ts";
import type { Balance } from "./balancers.ts";
import type { QueueLimits } from "./fair-queue.ts";
import type { UpstreamProtocol } from "./open-pool.ts";
import type { UpstreamTls } from "./target-origin.ts";
import type { EjectionOptions } from "./target-group.ts";

/** One upstream of the configuration. Times are in milliseconds. */
export interface UpstreamOptions {
  readonly name: string;
  /** At least one. */
  readonly targets: readonly string[];
  /** One for each target; by default, all are 1. */
  readonly weights?: readonly number[] | undefined;
  /** Default: `http1`. */
  readonly protocol?: UpstreamProtocol | undefined;
  readonly balance?: Balance | undefined;
  readonly health?: HealthOptions | undefined;
  readonly ejection?: EjectionOptions | undefined;
  readonly slowStart?: number | undefined;
  /** How names are resolved; by default, with each new connection. */
  readonly resolve?: ResolveOptions | undefined;
  readonly tls?: UpstreamTls | undefined;
  /** The maximum number of requests in flight per target. */
  readonly connections: number;
  /** For requests that arrive when all targets are full. */
  readonly queue: QueueLimits;
  readonly timeouts: { readonly connect: number; readonly response: number; readonly idle: number };
  readonly websocket: { readonly handshake: number; readonly idle: number };
}

/** Times are in milliseconds. */
export interface HealthOptions {
  /** Default: `http`. */
  readonly kind?: "http" | "grpc" | undefined;
  /** Only for `http`. */
  readonly path?: string | undefined;
  /** Only for `grpc`: the name of the service; empty for the entire server. */
  readonly service?: string | undefined;
  readonly interval: number;
  readonly timeout: number;
  /** Checks in a row that change the state. */
  readonly healthy: number;
  readonly unhealthy: number;
  /** Only for `http`: the statuses that count as healthy, as inclusive ranges. */
  readonly status?: readonly (readonly [from: number, to: number])[] | undefined;
}

/** Receives the events of targets. */
export interface UpstreamEvents {
  /** A target is left out, or used again. */
  targetChanged(upstream: string, target: string, available: boolean, why: string): void;
  /** A target has answered nothing for this long, in milliseconds, although a request waits; or it answers again. */
  targetSilent(upstream: string, target: string, ms: number): void;
  targetAnswers(upstream: string, target: string): void;
  /** The addresses of a target's name have changed. */
  targetResolved(upstream: string, target: string, addresses: readonly string[]): void;
  /** The name of a target was looked up. @param fault why no address was found. */
  targetLookedUp(upstream: string, target: string, fault: string | undefined): void;
}
