import type { ClientSessionOptions } from "node:http2";
import { MAX_HEADER_BYTES } from "./backend-fields.ts";

/** Maximum number of fields in a header section. Several may refer to one long field, so their number bounds the memory. */
const MAX_FIELDS = 500;

/** The bytes of one response that a backend may send before the client reads them. An HTTP/1.1 connection buffers as much. */
const WINDOW_BYTES = 64 * 1024;

/**
 * Maximum memory of a connection, in megabytes. Other bounds apply first: waiting bodies are counted per client, and
 * the window and the size of a header section limit responses.
 */
const MAX_SESSION_MEMORY_MB = 1_000;

/** The options of HTTP/2 sessions with backends. */
export const SESSION_OPTIONS = {
  maxSessionMemory: MAX_SESSION_MEMORY_MB,
  maxHeaderListPairs: MAX_FIELDS,
  // A client may repeat a field, and the backend decides what that means.
  strictSingleValueFields: false,
  settings: {
    enablePush: false,
    initialWindowSize: WINDOW_BYTES,
    maxHeaderListSize: MAX_HEADER_BYTES,
  },
} satisfies ClientSessionOptions & { readonly strictSingleValueFields: boolean };
