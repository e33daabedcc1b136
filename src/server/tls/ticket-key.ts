import { randomBytes } from "node:crypto";
import { ConfigError } from "../../core/config-problem.ts";
import type { ReadText } from "./certificate.ts";

/**
 * The key that encrypts session tickets (RFC 5077 §4). Replicas that share it can resume each other's sessions. Text only, so
 * that it can be posted to a worker thread.
 */
export interface TicketKey {
  /** Name, HMAC and AES key in base64, as Node and OpenSSL take them. */
  readonly key: string;
  /** Whether it comes from a file, which other replicas may share. */
  readonly shared: boolean;
}

const KEY_BYTES = 48;
const BASE64 = /^[A-Za-z0-9+/]{64}$/;

/** Creates a key for this process and all its threads. */
export function newTicketKey(): TicketKey {
  return { key: randomBytes(KEY_BYTES).toString("base64"), shared: false };
}

/** Reads a key from a file. @throws ConfigError if it is unreadable or contains no such key; never reveals the content. */
export function readTicketKey(file: string, textOf: ReadText): TicketKey {
  const key = textOf(file).trim();
  if (BASE64.test(key)) return { key, shared: true };
  const message = `holds no key of ${KEY_BYTES} bytes in base64: make one with openssl rand -base64 ${KEY_BYTES}`;
  throw new ConfigError([{ file, message }]);
}
