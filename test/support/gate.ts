import type { Peer } from "./raw-client.ts";

/** Something that stands in front of a backend: Sallyport, or the proxy that it must not be like. */
export interface Gate extends Peer, AsyncDisposable {
  /** A bearer token that it accepts. */
  readonly token: string;
  /** Whether it ended by itself. */
  exited(): boolean;
  close(): Promise<void>;
}
