import type { Socket } from "node:net";

/** Shares the time of a thread's event loop fairly among clients, for reading from them and for writing to them. */
export interface ClientReading {
  /**
   * Charges a client for one unit: a request, a part of a request or response body, or WebSocket frames.
   *
   * @param connection the client's connection.
   * @param backend the backend's connection, if the unit was read from it. It counts as the client's until `release`.
   */
  charge(connection: Socket, backend?: Socket): void;
  /** Charges a client for the cost of a login beyond that of another request. */
  chargeLogin(connection: Socket): void;
  /**
   * A client got the complete response to a request with a valid token. It has priority over unknown clients for some
   * minutes.
   */
  served(connection: Socket): void;
  /** Detaches the backend's connection from the client. */
  release(backend: Socket): void;
}

/** For exchanges without a client. */
export const UNMETERED: ClientReading = {
  charge: () => undefined,
  chargeLogin: () => undefined,
  served: () => undefined,
  release: () => undefined,
};
