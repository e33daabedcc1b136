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
  /** For a complete request, including its body. */
  readonly request: number;
  /** For a connection without requests. */
  readonly keepAlive: number;
  /** For a request without a byte in either direction. */
  readonly stall: number;
}

/** Room for pseudo-header fields and a cookie in many parts (RFC 9113 §8.2.3). Beyond it, nghttp2 resets the stream. */
const MORE_FIELDS = 64;
/** Maximum number of invalid frames, including empty DATA, and of refused streams. Beyond it, the connection ends. */
const MAX_INVALID_FRAMES = 100;
const MAX_REJECTED_STREAMS = 100;
/** Maximum resets by the client: in a burst, and per second. More end the connection (CVE-2023-44487). */
const RESETS = { streamResetBurst: 1_000, streamResetRate: 33 };
/** Backends' heads may be larger than nghttp2's default limit. */
const MAX_RESPONSE_HEAD_BYTES = 1024 * 1024;

/** Starts HTTP/2 on a connection. Node and nghttp2 read and write the frames. */
export function startHttp2(socket: Socket, limits: Http2Limits): ServerHttp2Session {
  return nodeHttp2().performServerHandshake(socket, {
    settings: settingsFor(limits),
    maxHeaderListPairs: MAX_HEADER_FIELDS + MORE_FIELDS,
    maxSessionInvalidFrames: MAX_INVALID_FRAMES,
    maxSessionRejectedStreams: MAX_REJECTED_STREAMS,
    maxSendHeaderBlockLength: MAX_RESPONSE_HEAD_BYTES,
    // Answers pass unchanged, even if a backend repeats a field.
    strictSingleValueFields: false,
    ...RESETS,
  });
}

/** Returns the settings that are sent to a client. */
export function settingsFor({ headerBytes, streams }: Http2Limits): {
  maxConcurrentStreams: number;
  maxHeaderListSize: number;
  enableConnectProtocol: boolean;
} {
  return {
    maxConcurrentStreams: streams,
    // Twice the limit, so that a head above the limit gets 431 and only larger ones a reset. A field counts as 32 bytes more.
    maxHeaderListSize: 2 * headerBytes + 32 * (MAX_HEADER_FIELDS + MORE_FIELDS),
    enableConnectProtocol: true,
  };
}
