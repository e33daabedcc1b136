/** The units that clients are charged for event-loop time: reading a request costs one. */
export const UNITS = {
  request: 1,
  accept: 1,
  start: 3,
  tlsHandshake: 8,
  upgrade: 24,
  /** In addition to the request: its body, a call to the main thread, and a log line. */
  login: 3,
} as const;
