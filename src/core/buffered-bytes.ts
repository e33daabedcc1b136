import type { Socket } from "node:net";

/** Something that buffers bytes in memory for a client's connection. */
export interface BufferHolder {
  /** The memory in use, in bytes. */
  readonly bufferedBytes: number;
}

/** The budget for all data buffered for clients, or because of them (`server.limits.bufferedBytes`). */
export interface BufferedBytes {
  /** Whether half of the budget is used. Nobody should then buffer more than one chunk for a connection. */
  readonly scarce: boolean;
  /** Counts the bytes of a holder towards a connection until the connection closes. */
  track(connection: Socket, holder: BufferHolder): void;
  /**
   * Measures the bytes buffered for a connection. Call it after buffering much; what was touched is measured within
   * a quarter of a second. Over the budget, it closes connections of the client with the most bytes, possibly this one.
   */
  measure(connection: Socket): void;
  /** Has a connection measured again within a quarter of a second. Call it when bytes pass: idle connections are left alone. */
  touch(connection: Socket): void;
  /**
   * Takes bytes for what no client waits for, such as copies of requests: at most an eighth of the budget, and only while
   * the whole is not scarce. @returns whether there was room; if so, the caller frees them.
   */
  reserve(bytes: number): boolean;
  /** Gives back what was reserved. */
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
