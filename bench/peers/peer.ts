import type { Cores } from "../machine/cores.ts";
import type { Setting } from "../setting/setting.ts";
import type { Algorithm } from "../setting/tokens.ts";

/** Where a proxy stands in one measurement. */
export interface Place {
  /** Port of the backend, plain HTTP on loopback. */
  readonly backend: number;
  /** TLS 1.3 in front, or nothing. */
  readonly tls: boolean;
  readonly cores: Cores;
  /** HTTP/2 towards clients, or on both sides; HTTP/1.1 alone when left out. */
  readonly http2?: "front" | "both";
}

/** Requests at a time that a proxy with HTTP/2 must let through to its backend. */
export const MOST_AT_ONCE = 16_000;

/** A proxy that runs. Disposing ends it. */
export interface Running extends AsyncDisposable {
  readonly pid: number;
  readonly port: number;
  /** Where `/metrics` and `/readyz` are; Sallyport alone has it. */
  readonly adminPort?: number;
}

/** Something that stands in front of a backend and can be compared. */
export interface Peer {
  readonly title: string;
  /** The tokens that it checks; undefined where it lets everything through. */
  readonly checks: Algorithm | undefined;
  /** Why it cannot take part on this machine; undefined when it can. */
  missing(): string | undefined;
  /** Resolves when it accepts connections. Rejects with what it complained about. */
  start(setting: Setting, place: Place): Promise<Running>;
}
