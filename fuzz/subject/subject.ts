import type { Loop } from "./loop.ts";

/** The tokens that cases use. */
export interface Credentials {
  readonly valid: string;
  /** Tokens in a valid form that must never be accepted. */
  readonly refused: readonly string[];
}

/** The properties of a request that decide about its identity. */
export interface Standing {
  readonly isPublic: boolean;
  readonly hasToken: boolean;
}

/** The proxy between the client and the backend. */
export interface Subject extends AsyncDisposable {
  readonly port: number;
  /** Signs its certificate, PEM; undefined without TLS. */
  readonly ca: string | undefined;
  readonly credentials: Credentials;
  /** Whether it answers with envelopes, according to the contract. */
  readonly keepsContract: boolean;
  /** The identity headers that the backend must get, names in lower case. */
  identity(request: Standing): ReadonlyMap<string, string>;
  /** Returns what went wrong apart from answers since the last call: the process ended, or logged an error. */
  troubles(): string[];
  exited(): boolean;
  /** Whether it reports that it is alive. */
  alive(): Promise<boolean>;
  /** Returns its resident memory; 0 if it is not watched. */
  residentBytes(): Promise<number>;
  /** Undefined if it is not watched. */
  readonly loop: Loop | undefined;
}

/** @param secure whether it speaks TLS. */
export type StartSubject = (backend: string, secure: boolean) => Promise<Subject>;

/** The network of trusted proxies, and the first of its addresses that cases use. */
export const TRUSTED = "127.128.0.0/9";
export const TRUSTED_FROM = 0x82_00_00;
/** A trusted proxy that no connection comes from, so that headers of the PROXY protocol can name it. */
export const TRUSTED_PEER = "127.255.0.1";

/** Paths with this prefix need no token. */
export const PUBLIC = "/public/";
