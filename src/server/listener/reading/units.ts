/** What clients are charged for the time of the event loop that they take, in units: reading a request costs one. */
export const UNITS = {
  request: 1,
  accept: 1,
  start: 3,
  tlsHandshake: 8,
  upgrade: 24,
  /** Besides the request: its body, a call to the main thread, a line in the log. */
  login: 3,
} as const;
