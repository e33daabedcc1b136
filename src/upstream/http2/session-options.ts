import type { ClientSessionOptions } from "node:http2";
import { MAX_HEADER_BYTES } from "./response-fields.ts";

/** The most fields of a header section. They may refer to one long field, so their number bounds what they take. */
const MOST_FIELDS = 500;

/** What a backend may send of one response before the client has taken it, in bytes. A connection of HTTP/1.1 holds as much. */
const WINDOW_BYTES = 64 * 1024;

/**
 * What a connection may hold, in megabytes. Other bounds apply first: waiting bodies are measured for each client, and
 * answers are limited by the window and the size of a header section.
 */
const MAX_SESSION_MEMORY_MB = 1_000;

/** How Sallyport speaks HTTP/2 to backends. */
export const SESSION_OPTIONS = {
  maxSessionMemory: MAX_SESSION_MEMORY_MB,
  maxHeaderListPairs: MOST_FIELDS,
  // A client may repeat a field, and the backend decides what that means.
  strictSingleValueFields: false,
  settings: {
    enablePush: false,
    initialWindowSize: WINDOW_BYTES,
    maxHeaderListSize: MAX_HEADER_BYTES,
  },
} satisfies ClientSessionOptions & { readonly strictSingleValueFields: boolean };
