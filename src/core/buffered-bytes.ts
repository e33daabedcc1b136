import type { Socket } from "node:net";

/** Something that buffers bytes in memory for a client's connection. */
export interface BufferHolder {
  /** The memory in use, in bytes. */
  readonly bufferedBytes: number;
}

/** The budget for all data buffered for clients, or because of them (`server.limits.bufferedBytes`). */
export interface BufferedBytes {
  /** Whether more than half of the budget is used. If so, buffer at most one chunk for each connection. */
  readonly scarce: boolean;
  /** Counts the bytes of a holder towards a connection until the connection closes. */
  track(connection: Socket, holder: BufferHolder): void;
  /**
   * Measures the bytes buffered for a connection now. Call it after buffering many bytes; otherwise `touch` is
   * enough. If the budget is exceeded, closes connections of the client with the most bytes, possibly this one.
   */
  measure(connection: Socket): void;
  /**
   * Schedules a measurement of a connection within a quarter of a second. Call it when bytes pass; idle connections
   * are not measured.
   */
  touch(connection: Socket): void;
  /**
   * Reserves bytes that no client waits for, such as copies of requests: at most an eighth of the budget, and only
   * while memory is not scarce.
   *
   * @returns whether there was room; if so, the caller must `free` the bytes.
   */
  reserve(bytes: number): boolean;
  /** Releases reserved bytes. */
  free(bytes: number): void;
}

/** An unlimited budget, for exchanges without a client. */
export const UNLIMITED: BufferedBytes = {
  scarce: false,
  track: () => undefined,
  measure: () => undefined,
  touch: () => undefined,
  reserve: () => true,
  free: () => undefined,
};
