import { randomBytes } from "node:crypto";
import type { GateError } from "../../core/request/errors.ts";
import { ambiguous } from "../request/request-fields.ts";

/** The head of a request in the form of HTTP/1.1: without pseudo-header fields. */
export interface Http2Head {
  readonly method: string;
  /** Whether it asks for a tunnel, with or without a protocol (RFC 9113 §8.5, RFC 8441 §4). */
  readonly isTunnel: boolean;
  /** The path and query; `*` for OPTIONS. */
  readonly target: string;
  /** Extended CONNECT (RFC 8441): the protocol to be opened. */
  readonly protocol: string | undefined;
  /** Names and values, alternating, with one `host` instead of `:authority`, and one `cookie`. */
  readonly fields: string[];
  /** The error if the request is ambiguous. */
  readonly refusal: GateError | undefined;
}

const KEY = "sec-websocket-key";
const KEY_BYTES = 16;
/** The characters of a target (RFC 9112 §3.2). nghttp2 accepts bytes above them, which Node's HTTP/1.1 parser refuses. */
const TARGET = /^[!-~]*$/;

/**
 * Reads a header section. nghttp2 has already checked it (RFC 9113 §8.2, §8.3): names in lower case, only known
 * pseudo-header fields, each once and before all others, no connection-specific fields.
 *
 * @param raw names and values, alternating.
 */
export function readHttp2Head(raw: readonly string[]): Http2Head {
  const fields: string[] = [];
  let [method, target, cookie, hosts] = ["", "", "", 0];
  let protocol: string | undefined;
  let authority: string | undefined;
  let host: string | undefined;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = raw[i] ?? "";
    const value = raw[i + 1] ?? "";
    if (name.startsWith(":")) {
      if (name === ":method") method = value;
      else if (name === ":path") target = value;
      else if (name === ":authority") authority = value;
      else if (name === ":protocol") protocol = value;
    } else if (name === "host") {
      host = value;
      hosts += 1;
    } else if (name === "cookie") cookie = cookie === "" ? value : `${cookie}; ${value}`;
    else fields.push(name, value);
  }
  if (cookie !== "") fields.push("cookie", cookie);
  const named = authority ?? host;
  if (named !== undefined) fields.push("host", named);
  const agrees = hosts === 0 || (hosts === 1 && sameHost(named, host));
  const refusal = agrees ? targetFault(target) : ambiguous("host");
  return { method, isTunnel: method === "CONNECT", target, protocol, fields, refusal };
}

function targetFault(target: string): GateError | undefined {
  return TARGET.test(target) ? undefined : ambiguous("target");
}

/** Whether `:authority` and `Host` name the same host (RFC 9113 §8.3.1). */
function sameHost(authority: string | undefined, host: string | undefined): boolean {
  return authority === host || authority?.toLowerCase() === host?.toLowerCase();
}

/** Whether a request opens a WebSocket on its stream (RFC 8441 §5). */
export function opensWebSocket({ isTunnel, protocol }: Http2Head): boolean {
  return isTunnel && protocol?.toLowerCase() === "websocket";
}

/**
 * Returns the same request in the form of HTTP/1.1: a GET that asks for an upgrade. Its key is generated, since HTTP/2 has
 * none; a key that the client sent anyway has no meaning.
 */
export function asUpgrade(head: Http2Head): Http2Head {
  const fields = head.fields.filter((_, i, all) => all[i - (i % 2)] !== KEY);
  const key = randomBytes(KEY_BYTES).toString("base64");
  fields.push("connection", "Upgrade", "upgrade", "websocket", KEY, key);
  return { ...head, method: "GET", fields };
}

/** Returns the size of a head as HTTP/1.1 would write it, in bytes. */
export function headSize(raw: readonly string[]): number {
  // Two bytes after each name and each value.
  let bytes = 2 * raw.length;
  for (const text of raw) bytes += text.length;
  return bytes;
}
