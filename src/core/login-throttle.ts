/** Slows guessing down. Keyed so that a stranger's failures cannot lock the owner out from another address. */
export interface LoginThrottle {
  /** Seconds to wait before this client may try this name again; 0 when it may try now. */
  retryAfter(username: string, client: string): number;
  /** How many more failures this client may have with this name before it must wait. */
  remaining(username: string, client: string): number;
  failed(username: string, client: string): void;
  succeeded(username: string, client: string): void;
}
