import type { ServerHttp2Stream } from "node:http2";
import type { TunnelStream } from "../../core/request/forwarder.ts";

/** Error code of an aborted tunnel (RFC 8441 §5, RFC 9113 §7). */
const CANCEL = 8;
/** The status that opens a tunnel (RFC 8441 §5). */
const OPENED = 200;

/** The stream of an extended CONNECT. */
export class Http2Tunnel implements TunnelStream {
  readonly duplex: ServerHttp2Stream;
  readonly #respond: (status: number, fields: string[]) => void;

  /** @param respond sends the head of the answer. */
  constructor(stream: ServerHttp2Stream, respond: (status: number, fields: string[]) => void) {
    this.duplex = stream;
    this.#respond = respond;
  }

  open(fields: string[]): number {
    this.#respond(OPENED, fields);
    return OPENED;
  }

  abort(): void {
    if (!this.duplex.closed) this.duplex.close(CANCEL);
    this.duplex.destroy();
  }
}
