import type { Peer } from "./raw-client.ts";

/** A proxy in front of a backend: Sallyport, or the naive one that it must not be like. */
export interface Gate extends Peer, AsyncDisposable {
  /** A bearer token that it accepts. */
  readonly token: string;
  /** Whether its process has ended. */
  exited(): boolean;
  close(): Promise<void>;
}
