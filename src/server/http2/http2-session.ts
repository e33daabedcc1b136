import type { ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";
import { nodeHttp2 } from "../../lib/http/node-http2.ts";
import { MAX_HEADER_FIELDS } from "../request/request-fields.ts";

/** What a client may do on one connection. */
export interface Http2Limits {
  /** Maximum size of a request's head, in bytes. */
  readonly headerBytes: number;
  /** Maximum number of concurrent streams. */
  readonly streams: number;
}

/** What a reload may change. */
export interface Http2Settings {
  /** Whether clients may choose HTTP/2. */
  readonly offered: boolean;
  readonly limits: Http2Limits;
  readonly timeouts: Http2Timeouts;
}

/** Time limits in milliseconds. */
interface Http2Timeouts {
  /** For the first frame of a connection. */
  readonly header: number;
  /** For a whole request, its body included. */
  readonly request: number;
  /** For a connection without requests. */
  readonly keepAlive: number;
  /** For a request without a byte in either direction. */
  readonly stall: number;
}

/** Pseudo-header fields, and a cookie in many parts (RFC 9113 §8.2.3), beyond which nghttp2 resets the stream. */
const MORE_FIELDS = 64;
/** Frames that break the rules, empty DATA included, and refused streams, beyond which the connection ends. */
const MOST_INVALID_FRAMES = 100;
const MOST_REJECTED_STREAMS = 100;
/** Resets by the client that count as normal: at once, and per second. More end the connection (CVE-2023-44487). */
const RESETS = { streamResetBurst: 1_000, streamResetRate: 33 };
/** Heads of backends may be larger than what nghttp2 sends by default. */
const MOST_RESPONSE_HEAD_BYTES = 1024 * 1024;

/** Starts HTTP/2 on a connection. Node and nghttp2 read and write the frames. */
export function startHttp2(socket: Socket, limits: Http2Limits): ServerHttp2Session {
  return nodeHttp2().performServerHandshake(socket, {
    settings: settingsFor(limits),
    maxHeaderListPairs: MAX_HEADER_FIELDS + MORE_FIELDS,
    maxSessionInvalidFrames: MOST_INVALID_FRAMES,
    maxSessionRejectedStreams: MOST_REJECTED_STREAMS,
    maxSendHeaderBlockLength: MOST_RESPONSE_HEAD_BYTES,
    // Answers pass unchanged, even if a backend repeats a field.
    strictSingleValueFields: false,
    ...RESETS,
  });
}

/** The settings that are sent to a client. */
export function settingsFor({ headerBytes, streams }: Http2Limits): {
  maxConcurrentStreams: number;
  maxHeaderListSize: number;
  enableConnectProtocol: boolean;
} {
  return {
    maxConcurrentStreams: streams,
    // Beyond it a stream is reset; up to it, a head that is too large gets 431. Each field counts 32 bytes more than it has.
    maxHeaderListSize: 2 * headerBytes + 32 * (MAX_HEADER_FIELDS + MORE_FIELDS),
    enableConnectProtocol: true,
  };
}
