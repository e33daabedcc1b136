import type { StreamEnd } from "./outcome.ts";
import type { Permit } from "./permit.ts";

/** An open WebSocket. */
export interface OpenStream {
  /** The permit under which it is open. */
  readonly permit: Permit;
  /** Replaces the permit after a reload. */
  renew(permit: Permit): void;
  /** Closes the WebSocket, unless it is already closing. Returns whether it did. */
  end(reason: StreamEnd): boolean;
}
