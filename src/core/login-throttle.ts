import type { AttemptOrigin } from "./credential-check.ts";

/** What refused an attempt: the name from that address, the address, the name, or all strangers together. */
export type ThrottleLimit = "pair" | "address" | "account" | "global";

export interface ThrottleRefusal {
  readonly limit: ThrottleLimit;
  /** Whole seconds until another attempt has a chance; 1 or more. */
  readonly retryAfter: number;
}

interface LoginLine {
  readonly key: string;
  readonly group: "familiar" | "strange";
}

/** An attempt that may be made now. It ends in exactly one of three ways. */
export interface LoginAttempt {
  readonly origin: AttemptOrigin;
  failed(): void;
  /** Clears what this client did to this name, and nothing else. */
  succeeded(): void;
  /** Nobody learned whether the password was right. */
  abandoned(): void;
}

/** Slows guessing down. Keyed so that a stranger's failures cannot lock the owner out from another address. */
export interface LoginThrottle {
  /** The line in which attempts that share one count must wait for each other; strangers have places of their own. */
  line(username: string, client: string): LoginLine;
  /** How many more failures this client may have with this name before it must wait. */
  remaining(username: string, client: string): number;
  /** Lets an attempt begin, or says why this client must wait before it tries this name again. */
  begin(username: string, client: string): LoginAttempt | ThrottleRefusal;
}
