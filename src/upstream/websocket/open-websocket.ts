import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { TLSSocket } from "node:tls";
import { randomBytes } from "node:crypto";
import type { BufferHolder, Transfer } from "../../core/request/transfer.ts";
import type { StreamEnd } from "../../core/request/outcome.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { ClientEnd } from "./websocket.ts";
import type { ForwardingSettings, UpgradeContext } from "../http/dispatch.ts";
import { countGarbage } from "../http/scavenger.ts";

/** Parses a WebSocket byte stream just far enough to find frame boundaries (RFC 6455 §5.2). */
export class FrameBoundary {
  /** Header bytes of the current frame until its length is known. */
  #header: number[] = [];
  /** Remaining bytes of the current frame once its header is known. */
  #remaining = 0;

  /** Whether the stream is between two frames, where another frame may be inserted. */
  get atBoundary(): boolean {
    return this.#remaining === 0 && this.#header.length === 0;
  }

  /** Consumes the next bytes of the stream. */
  advance(chunk: Uint8Array): void {
    let at = 0;
    while (at < chunk.length) {
      const second = chunk[at + 1];
      if (this.#remaining > 0) {
        const step = Math.min(this.#remaining, chunk.length - at);
        this.#remaining -= step;
        at += step;
      } else if (second !== undefined && this.#header.length === 0 && shortLength(second) < 126) {
        // A fast path: a client may send millions of small frames.
        this.#remaining = shortLength(second) + maskBytes(second);
        at += 2;
      } else {
        this.#header.push(chunk[at] ?? 0);
        at += 1;
        this.#readHeader();
      }
    }
  }

  /**
   * Consumes bytes up to the end of the current frame.
   *
   * @returns the number of consumed bytes.
   */
  finish(chunk: Uint8Array): number {
    let at = 0;
    while (at < chunk.length && !this.atBoundary) {
      // Consume a header byte by byte.
      const end = Math.min(at + Math.max(this.#remaining, 1), chunk.length);
      this.advance(chunk.subarray(at, end));
      at = end;
    }
    return at;
  }

  #readHeader(): void {
    const header = this.#header;
    const second = header[1];
    if (second === undefined) return;
    const short = shortLength(second);
    const lengthBytes = short === 126 ? 2 : short === 127 ? 8 : 0;
    if (header.length < 2 + lengthBytes) return;
    const length =
      lengthBytes === 0
        ? short
        : header.slice(2, 2 + lengthBytes).reduce((sum, octet) => sum * 256 + octet, 0);
    this.#remaining = length + maskBytes(second);
    this.#header = [];
  }
}

/** The length field in the second byte of a header: the length itself, or 126 or 127 for an extended length. */
function shortLength(second: number): number {
  return second & 0x7f;
}

function maskBytes(second: number): number {
  return (second & 0x80) === 0 ? 0 : 4;
}

/**
 * Returns a close frame as a server sends it.
 *
 * @param code a status code of RFC 6455 §7.4.1.
 * @param reason at most 123 bytes of UTF-8.
 */
export function closeFrame(code: number, reason = ""): Buffer {
  const payload = closePayload(code, reason);
  return Buffer.concat([Buffer.from([0x88, payload.length]), payload]);
}

/** Returns a masked close frame as a client sends it (RFC 6455 §5.3). */
export function maskedCloseFrame(code: number, reason = ""): Buffer {
  const payload = closePayload(code, reason);
  const key = randomBytes(4);
  const masked = payload.map((byte, index) => byte ^ (key[index % 4] ?? 0));
  return Buffer.concat([Buffer.from([0x88, 0x80 | payload.length]), key, masked]);
}

function closePayload(code: number, reason: string): Buffer {
  return Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]);
}

/** A close frame to send after the current frame. */
interface Ending {
  readonly frame: Buffer;
  readonly sent: () => void;
}

/** One direction of a WebSocket that is piped. It knows where a frame may be inserted. */
class WebSocketDirection {
  readonly #from: Duplex;
  readonly #to: Duplex;
  readonly #frames = new FrameBoundary();
  #ending: Ending | undefined;
  #ended = false;

  constructor(from: Duplex, to: Duplex) {
    this.#from = from;
    this.#to = to;
  }

  /** Follows the data that the pipe has passed. */
  moved(chunk: Buffer): void {
    if (this.#ending === undefined) this.#frames.advance(chunk);
    else if (!this.#ended) this.#finish(chunk, this.#ending);
  }

  /** Completes the current frame, sends this one, and nothing after it. Further calls do nothing. */
  endWith(frame: Buffer, sent = (): void => undefined): void {
    if (this.#ending !== undefined) return;
    this.#ending = { frame, sent };
    this.#from.unpipe(this.#to);
    this.#from.resume();
    if (this.#frames.atBoundary) this.#end(this.#ending);
  }

  /** Passes on data as the pipe did, until the end of the current frame. */
  #finish(chunk: Buffer, ending: Ending): void {
    const rest = chunk.subarray(0, this.#frames.finish(chunk));
    if (this.#to.writable && !this.#to.write(rest)) {
      this.#from.pause();
      this.#to.once("drain", () => this.#from.resume());
    }
    if (this.#frames.atBoundary) this.#end(ending);
  }

  #end({ frame, sent }: Ending): void {
    this.#ended = true;
    if (this.#to.writable) this.#to.write(frame);
    sent();
  }
}

/** Close codes (RFC 6455 §7.4.1). */
const GOING_AWAY = 1001;
const POLICY_VIOLATION = 1008;
/** The text of the close frame by the reason in the access log. */
const CLOSE_REASONS: Readonly<Record<StreamEnd, string>> = {
  token_expired: "token expired",
  revoked: "token revoked",
  no_longer_allowed: "no longer allowed",
};
/** The time limit for the closing handshake, in milliseconds. */
const CLOSING_HANDSHAKE_MS = 2_000;
/**
 * The time for the current frame and for both sides to close after the token expired, the route was closed, or one side has
 * left, in milliseconds. The documented limit is a second in all; the rest is for detecting the end.
 */
const AFTER_END_MS = 700;

/** Buffered data in one direction below which nothing is counted, in bytes. */
const UNCOUNTED_BYTES = 16 * 1024;
/**
 * TLS records are read into chunks of 64 KiB, each of which is retained while any record in it is buffered: 25 MB of
 * frames took 49 MB.
 */
const TLS_FACTOR = 2;
/** An empty write, whose callback runs when everything before it was written. */
const NOTHING = Buffer.alloc(0);

/** Two ends that are piped into each other: counted, limited in time, and closed together. */
export class OpenWebSocket implements BufferHolder {
  /** The permit under which it is open. A reload replaces it. */
  permit: Permit;
  readonly #client: ClientEnd;
  readonly #backend: Socket;
  readonly #transfer: Transfer;
  readonly #settings: ForwardingSettings;
  readonly #toClient: WebSocketDirection;
  readonly #toBackend: WebSocketDirection;
  readonly #idle: NodeJS.Timeout;
  #ending = false;
  readonly #closed = Promise.withResolvers<void>();
  /** Resolves when the client's side is closed. */
  readonly closed = this.#closed.promise;

  /** Must be created in the same turn as the pipes, before any data has passed. */
  constructor(context: UpgradeContext, client: ClientEnd, backend: Socket) {
    const { permit, transfer, settings, upstream } = context;
    const { reading } = settings;
    this.permit = permit;
    this.#client = client;
    this.#backend = backend;
    this.#transfer = transfer;
    this.#settings = settings;
    this.#toClient = new WebSocketDirection(backend, client.duplex);
    this.#toBackend = new WebSocketDirection(client.duplex, backend);
    this.#idle = setTimeout(() => {
      transfer.abortReason = "idle_timeout";
      this.#destroy();
    }, upstream.options.websocket.idle);
    const { duplex, connection } = client;
    duplex.on("data", (chunk: Buffer) => {
      transfer.bytesIn += chunk.length;
      this.#idle.refresh();
      this.#toBackend.moved(chunk);
      countGarbage(chunk.length);
      reading.charge(connection);
      this.#bound(duplex, backend);
    });
    backend.on("data", (chunk: Buffer) => {
      transfer.bytesOut += chunk.length;
      this.#idle.refresh();
      this.#toClient.moved(chunk);
      countGarbage(chunk.length);
      reading.charge(connection, backend);
      this.#bound(backend, duplex);
    });
    duplex.once("close", () => {
      clearTimeout(this.#idle);
      reading.release(backend);
      this.#closeBackend();
      this.#closed.resolve();
    });
    // A side that keeps its half open after the other one has left would hold both until `idleMs`. The client gets all
    // that the backend sent before.
    duplex.once("end", () => this.#endWithin(AFTER_END_MS));
    duplex.once("finish", () => this.#endWithin(AFTER_END_MS));
    duplex.once("error", () => this.#destroy());
    backend.once("error", () => this.#destroy());
    client.holds(this);
    if (duplex.destroyed) this.#destroy();
  }

  /** The buffered data in addition to what Node is writing to the client. */
  get bufferedBytes(): number {
    const { duplex, connection } = this.#client;
    const fromClient = this.#backend.writableLength + unreadOf(duplex);
    const factor = connection instanceof TLSSocket ? TLS_FACTOR : 1;
    return fromClient * factor + unreadOf(this.#backend);
  }

  /**
   * Sends close code 1001 to the client as soon as no frame from the backend is half sent. The client's close frame
   * is forwarded to the backend, so that both learn of the end.
   */
  sendGoingAway(): void {
    this.#toClient.endWith(closeFrame(GOING_AWAY), () => this.#endWithin(CLOSING_HANDSHAKE_MS));
  }

  /** Counts unread data; if memory is scarce, pauses its sender until it has been read. */
  #bound(from: Duplex, to: Duplex): void {
    const stopped = from.isPaused();
    const { buffered } = this.#settings;
    const { connection } = this.#client;
    if (!stopped && to.writableLength <= UNCOUNTED_BYTES) {
      buffered.touch(connection);
      return;
    }
    buffered.measure(connection);
    if (stopped || !buffered.scarce || !to.writable) return;
    from.pause();
    to.write(NOTHING, () => from.resume());
  }

  /** Closes both sides with 1008, unless it is already closing; nothing more passes between them. @returns whether it did. */
  end(reason: StreamEnd): boolean {
    if (this.#ending || this.#client.duplex.destroyed) return false;
    this.#ending = true;
    this.#transfer.abortReason = reason;
    this.#toClient.endWith(closeFrame(POLICY_VIOLATION, CLOSE_REASONS[reason]));
    this.#toBackend.endWith(maskedCloseFrame(POLICY_VIOLATION, CLOSE_REASONS[reason]));
    this.#endWithin(AFTER_END_MS);
    return true;
  }

  /**
   * The client is gone. The backend may still read what it sent, unless memory is scarce or the backend is too slow.
   */
  #closeBackend(): void {
    const backend = this.#backend;
    if (this.#settings.buffered.scarce) {
      backend.destroy();
      return;
    }
    backend.destroySoon();
    if (!backend.destroyed) setTimeout(() => backend.destroy(), AFTER_END_MS).unref();
  }

  #endWithin(ms: number): void {
    setTimeout(() => this.#destroy(), ms).unref();
  }

  #destroy(): void {
    clearTimeout(this.#idle);
    this.#client.abort();
    this.#backend.destroy();
    this.#closed.resolve();
  }
}

/** Returns the number of bytes that were read but not passed on: Node fills the buffer of a paused stream. */
function unreadOf(end: Duplex): number {
  return end.isPaused() ? end.readableHighWaterMark : end.readableLength;
}
