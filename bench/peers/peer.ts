import type { Cores } from "../machine/cores.ts";
import type { Setting } from "../setting/setting.ts";
import type { Algorithm } from "../setting/tokens.ts";

/** The surroundings of a proxy in one measurement. */
export interface Place {
  /** Port of the backend, plain HTTP on loopback. */
  readonly backend: number;
  /** Whether clients use TLS 1.3. */
  readonly tls: boolean;
  readonly cores: Cores;
  /** HTTP/2 towards clients, or on both sides; by default, only HTTP/1.1. */
  readonly http2?: "front" | "both";
}

/** The number of concurrent requests that a proxy with HTTP/2 must let through to its backend. */
export const MOST_AT_ONCE = 16_000;

/** A proxy that runs. Disposing ends it. */
export interface Running extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
  /** The port of `/metrics` and `/readyz`; only Sallyport has it. */
  readonly adminPort?: number;
}

/** A proxy that can be compared. */
export interface Peer {
  readonly title: string;
  /** The algorithm of the tokens that it verifies; undefined if it lets everything through. */
  readonly checks: Algorithm | undefined;
  /** Returns why it cannot take part on this machine; undefined if it can. */
  missing(): string | undefined;
  /** Resolves when it accepts connections. Rejects with its error output. */
  start(setting: Setting, place: Place): Promise<Running>;
}
