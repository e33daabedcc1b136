/** What refused an attempt: the name from that address, the address, the name, or all strangers together. */
export type ThrottleLimit = "pair" | "address" | "account" | "global";

interface ThrottleRefusal {
  readonly limit: ThrottleLimit;
  /** Whole seconds until another attempt has a chance; 1 or more. */
  readonly retryAfter: number;
}

/** Slows guessing down. Keyed so that a stranger's failures cannot lock the owner out from another address. */
export interface LoginThrottle {
  /** Names the line in which attempts that share one count must wait for each other. */
  line(username: string, client: string): string;
  /** Why this client must wait before it tries this name again; undefined when it may try now. */
  refusal(username: string, client: string): ThrottleRefusal | undefined;
  /** How many more failures this client may have with this name before it must wait. */
  remaining(username: string, client: string): number;
  failed(username: string, client: string): void;
  /** Clears what this client did to this name, and nothing else. */
  succeeded(username: string, client: string): void;
}
