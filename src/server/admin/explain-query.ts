import { isIP } from "node:net";
import type { DryRunRequest } from "../../core/explanation.ts";
import { METHODS, validateHeaderName, validateHeaderValue } from "../../lib/http/node-http.ts";

/** A query to explain a request. */
export interface ExplainQuery {
  readonly method: string;
  /** `https://host/path`, or only a path. */
  readonly url: string;
  /** `Name: value` each. */
  readonly headers: readonly string[];
  readonly authorization: string | undefined;
  /** Address of the TCP peer. */
  readonly peer: string;
}

/** The query describes no valid request. The message says why, without header values. */
export class ExplainQueryError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "ExplainQueryError";
  }
}

/** A WebSocket key, so that users need not type one; from RFC 6455 §1.3. */
const SAMPLE_KEY = "dGhlIHNhbXBsZSBub25jZQ==";

const URL_FORM = /^(?:(https?):\/\/([^/?#]+))?([/?#].*)?$/i;

/**
 * Creates the head that a client would send. Leaves the path as written: a browser would normalize it, an attacker would
 * not.
 *
 * @throws ExplainQueryError
 */
export function createDryRunRequest(query: ExplainQuery): DryRunRequest {
  const { method, url, peer, authorization } = query;
  if (!METHODS.includes(method) || method === "CONNECT") {
    throw new ExplainQueryError("the method is none that can be explained");
  }
  const [, scheme = "https", authority = "localhost", rest = "/"] = URL_FORM.exec(url) ?? [];
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  if (url === "" || !URL_FORM.test(url) || /[\u0000-\u0020\u007f]/.test(url)) {
    throw new ExplainQueryError("the URL must be https://host/path, http://host/path or /path");
  }
  if (isIP(peer) === 0) throw new ExplainQueryError("the client must be an address");
  // Clients send non-ASCII characters as UTF-8; the head has one character per byte.
  const target = Buffer.from(rest.startsWith("/") ? rest : `/${rest}`).toString("latin1");
  const fields = query.headers.map(fieldOf);
  if (authorization !== undefined) fields.push(checked("Authorization", authorization));
  const has = (wanted: string): boolean => fields.some(([name]) => name.toLowerCase() === wanted);
  if (!has("host")) fields.unshift(checked("Host", authority));
  if (has("upgrade") && !has("sec-websocket-key")) fields.push(["Sec-WebSocket-Key", SAMPLE_KEY]);
  const lines = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  const head = `${method} ${target} HTTP/1.1\r\n${lines}\r\n`;
  return { head, secure: scheme.toLowerCase() === "https", peer };
}

function fieldOf(line: string): [name: string, value: string] {
  const colon = line.indexOf(":");
  if (colon < 1) throw new ExplainQueryError("a header must be Name: value");
  return checked(line.slice(0, colon), line.slice(colon + 1).trim());
}

function checked(name: string, value: string): [name: string, value: string] {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new ExplainQueryError("a header has a name or a value that cannot be sent");
  }
  return [name, value];
}
