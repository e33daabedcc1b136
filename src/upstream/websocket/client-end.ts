import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { BufferedBytes, BufferHolder } from "../../core/buffered-bytes.ts";
import type { UpgradeRequest } from "../../core/request/forwarder.ts";
import type { Transfer } from "../../core/request/transfer.ts";

/** The client's end of a WebSocket: its connection, or its HTTP/2 stream. */
export interface ClientEnd {
  /** The bytes of both directions. */
  readonly duplex: Duplex;
  /** The connection, which other streams may share. */
  readonly connection: Socket;
  /** Ends it at once. */
  abort(): void;
  /** Counts what is buffered for it. */
  holds(holder: BufferHolder): void;
}

export function clientEndOf(
  { request, stream }: Pick<UpgradeRequest, "request" | "stream">,
  transfer: Transfer,
  buffered: BufferedBytes,
): ClientEnd {
  const { socket } = request;
  if (stream !== undefined) {
    return {
      duplex: stream.duplex,
      connection: socket,
      abort: () => stream.abort(),
      // The connection counts what its streams hold.
      holds: (holder) => void (transfer.holder = holder),
    };
  }
  return {
    duplex: socket,
    connection: socket,
    abort: () => void socket.destroy(),
    holds: (holder) => buffered.track(socket, holder),
  };
}
