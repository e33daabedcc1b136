import { isIP } from "node:net";
import type { AskedRequest } from "../core/explanation.ts";
import { METHODS, validateHeaderName, validateHeaderValue } from "../lib/node-http.ts";

/** What somebody wants explained. */
export interface Question {
  readonly method: string;
  /** `https://host/path`, or a path alone. */
  readonly url: string;
  /** `Name: value` each. */
  readonly headers: readonly string[];
  readonly authorization: string | undefined;
  /** Address of the TCP peer. */
  readonly peer: string;
}

/** The question describes nothing that could be sent; the message says why and repeats no header value. */
export class QuestionError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "QuestionError";
  }
}

/** What every client that opens a WebSocket sends, and nobody wants to type; that of RFC 6455 §1.3. */
const SAMPLE_KEY = "dGhlIHNhbXBsZSBub25jZQ==";

const URL_FORM = /^(?:(https?):\/\/([^/?#]+))?([/?#].*)?$/i;

/**
 * The head that a client would send. The path goes into it as it is written: what a browser would tidy up is what an
 * attacker would send.
 *
 * @throws QuestionError
 */
export function askedRequest(question: Question): AskedRequest {
  const { method, url, peer, authorization } = question;
  if (!METHODS.includes(method) || method === "CONNECT") {
    throw new QuestionError("the method is none that can be explained");
  }
  const [, scheme = "https", authority = "localhost", rest = "/"] = URL_FORM.exec(url) ?? [];
  // oxlint-disable-next-line no-control-regex -- control characters are what it looks for
  if (url === "" || !URL_FORM.test(url) || /[\u0000-\u0020\u007f]/.test(url)) {
    throw new QuestionError("the URL must be https://host/path, http://host/path or /path");
  }
  if (isIP(peer) === 0) throw new QuestionError("the client must be an address");
  // Clients send what is not ASCII as UTF-8; the head has a character for each byte.
  const target = Buffer.from(rest.startsWith("/") ? rest : `/${rest}`).toString("latin1");
  const fields = question.headers.map(fieldOf);
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
  if (colon < 1) throw new QuestionError("a header must be Name: value");
  return checked(line.slice(0, colon), line.slice(colon + 1).trim());
}

function checked(name: string, value: string): [name: string, value: string] {
  try {
    validateHeaderName(name);
    validateHeaderValue(name, value);
  } catch {
    throw new QuestionError("a header has a name or a value that cannot be sent");
  }
  return [name, value];
}
