import type { Loop } from "./loop.ts";

/** Tokens by which a case tries its luck. */
export interface Credentials {
  readonly valid: string;
  /** Tokens of a valid form that must never be accepted. */
  readonly refused: readonly string[];
}

/** What a request may claim. */
export interface Standing {
  readonly isPublic: boolean;
  readonly hasToken: boolean;
}

/** What stands between the client and the backend. */
export interface Subject extends AsyncDisposable {
  readonly port: number;
  /** Signs its certificate, PEM; undefined without TLS. */
  readonly ca: string | undefined;
  readonly credentials: Credentials;
  /** Whether it answers with envelopes, and by the contract. */
  readonly keepsContract: boolean;
  /** The identity headers that the backend must get, names in lower case. */
  identity(request: Standing): ReadonlyMap<string, string>;
  /** What went wrong beside the answers, since the last call: the process ended, it logged an error. */
  troubles(): string[];
  exited(): boolean;
  /** Whether it says that it is alive. */
  alive(): Promise<boolean>;
  /** The memory that it has; 0 where nobody watches it. */
  residentBytes(): Promise<number>;
  /** Undefined where nobody watches it. */
  readonly loop: Loop | undefined;
}

/** @param secure whether it speaks TLS. */
export type StartSubject = (backend: string, secure: boolean) => Promise<Subject>;

/** The clients that are trusted proxies, as a network, and the first address of those that cases use. */
export const TRUSTED = "127.128.0.0/9";
export const TRUSTED_FROM = 0x82_00_00;

/** What begins so needs no token. */
export const PUBLIC = "/public/";
