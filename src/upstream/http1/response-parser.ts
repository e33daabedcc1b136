import type { Http1Connection } from "./http1-connection.ts";
import { Duplex, type Writable } from "node:stream";
import { createServer } from "../../lib/http/node-http.ts";
import { BackendFault } from "../http/failures.ts";
import type { BackendRequest } from "../http/connection.ts";
import { rememberedByName } from "../../lib/text/by-name.ts";
import { RequestBody } from "../http/client-body.ts";

/** Methods whose requests have a body (RFC 9110 §9.3). With other methods, a server may not expect or read one. */
const WITH_BODY = new Set(["PUT", "POST", "PATCH", "QUERY", "PROPFIND", "PROPPATCH"]);

/**
 * Characters that are not allowed in a field value (RFC 9110 §5.5) or a request target (RFC 9112 §3.2), or that are
 * not bytes.
 */
const NOT_IN_VALUE = /[^\t\x20-\x7e\x80-\xff]/;
const NOT_IN_TARGET = /[^\x21-\x7e\x80-\xff]/;

export function isSendableTarget(path: string): boolean {
  return !NOT_IN_TARGET.test(path);
}

export function isSendableValue(value: string): boolean {
  return !NOT_IN_VALUE.test(value);
}

/** The end of the previous line and the beginning of a field line, in one string: half as many strings per field. */
const lineStart = rememberedByName((name) => `\r\n${name}: `);

interface RequestHead {
  readonly text: string;
  /** Whether the body must be chunked, since it has no length. */
  readonly chunked: boolean;
  /**
   * Whether the connection can be reused. It cannot after HEAD, since some servers send a body anyway, nor after an
   * unexpected request body, since some servers do not read it. Both would be read as the next message.
   */
  readonly keepAlive: boolean;
}

/** Creates the head of a request. @throws BackendFault */
export function requestHead({ method, path, headers, body }: BackendRequest): RequestHead {
  if (!isSendableTarget(path)) throw new BackendFault("unsendable");
  let host = "";
  let others = "";
  let chunked = body instanceof RequestBody;
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    const value = headers[i + 1] ?? "";
    if (!isSendableValue(value)) throw new BackendFault("unsendable");
    // RFC 9110 §7.2: Host comes first.
    if (name === "Host") host = `\r\nHost: ${value}`;
    else others = others + lineStart(name) + value;
    if (name === "Content-Length") chunked = false;
  }
  if (chunked) others += "\r\nTransfer-Encoding: chunked";
  else if (body === null && WITH_BODY.has(method)) others += "\r\nContent-Length: 0";
  const keepAlive = method !== "HEAD" && (body === null || WITH_BODY.has(method));
  const connection = keepAlive ? "keep-alive" : "close";
  const text = `${method} ${path} HTTP/1.1${host}\r\nConnection: ${connection}${others}\r\n\r\n`;
  return { text, chunked, keepAlive };
}

/** Called while a body is sent. */
interface BodyListener {
  onBodySent(): void;
  onRequestSent(): void;
  /** The client has left, or the body broke a limit. */
  onBodyError(error: Error): void;
}

/** Writes a body to a connection while it arrives, with back-pressure. */
export class BodyWriter {
  readonly #socket: Writable;
  readonly #body: RequestBody;
  readonly #chunked: boolean;
  readonly #listener: BodyListener;

  /** @param chunked whether the body has no length. */
  constructor(socket: Writable, body: RequestBody, chunked: boolean, listener: BodyListener) {
    this.#socket = socket;
    this.#body = body;
    this.#chunked = chunked;
    this.#listener = listener;
    socket.on("drain", this.#onDrain);
    body.on("data", this.#onData).on("end", this.#onEnd).on("error", this.#onError);
    body.on("close", this.#onClose);
  }

  /** Stops writing. The rest of the body stays with the client's request. */
  stop(): void {
    this.#socket.off("drain", this.#onDrain);
    this.#body.off("data", this.#onData).off("end", this.#onEnd).off("close", this.#onClose);
    // Later errors affect no request.
    this.#body.destroy();
  }

  readonly #onData = (chunk: Buffer): void => {
    if (!this.#write(chunk)) this.#body.pause();
    this.#listener.onBodySent();
  };

  #write(chunk: Buffer): boolean {
    const socket = this.#socket;
    if (!this.#chunked) return socket.write(chunk);
    socket.cork();
    socket.write(`${chunk.length.toString(16)}\r\n`, "latin1");
    socket.write(chunk);
    const more = socket.write("\r\n", "latin1");
    socket.uncork();
    return more;
  }

  readonly #onDrain = (): void => void this.#body.resume();

  readonly #onEnd = (): void => {
    if (this.#chunked) this.#socket.write("0\r\n\r\n", "latin1");
    this.stop();
    this.#listener.onRequestSent();
  };

  readonly #onError = (error: Error): void => this.#listener.onBodyError(error);

  readonly #onClose = (): void => this.#listener.onBodyError(new BackendFault("client_gone"));
}

/** What is called with the parts of a response. `read` rethrows whatever it throws. */
type ResponseEvents = Pick<Http1Connection, "onBegin" | "onHead" | "onBody" | "onEnd">;

/** The result of Node's parser: a number of bytes, or an error with a code of llhttp (`HPE_…`). */
type Parsed = number | Error | undefined;

interface NodeParser {
  [callback: number]: unknown;
  initialize(type: number, resource: object, maxHeaderSize: number, leniency: number): void;
  execute(bytes: Buffer): Parsed;
  finish(): Parsed;
  close(): void;
}

const CONSTANTS = [
  "RESPONSE",
  "kLenientNone",
  "kOnMessageBegin",
  "kOnHeaders",
  "kOnHeadersComplete",
  "kOnBody",
  "kOnMessageComplete",
] as const;
type Constants = Readonly<Record<(typeof CONSTANTS)[number], number>>;
type NodeParserClass = (new () => NodeParser) & Constants;

/** If this is returned, Node skips the body: for a response to HEAD, or after an interim response. */
const WITHOUT_BODY = 1;

/**
 * Each connection of a thread reads into this buffer: each read is parsed, and what Node's parser keeps of it copied, before the
 * next one. With 64 KiB, client and backend are woken twice as often, at 1.3 times the CPU time of a download. From 128 KiB on
 * (`MALLOC_MMAP_THRESHOLD_` of the image), each copy is mapped anew, at three times the CPU time.
 */
export const READ_BUFFER = Buffer.allocUnsafeSlow(124 * 1024);

/**
 * Reads the responses on one connection with Node's own parser, llhttp, as strictly as `node:http` does: ambiguous framing
 * is an error.
 */
export class ResponseParser {
  readonly #parser: NodeParser;
  readonly #events: ResponseEvents;
  /** The parts of the body in this read: copies, which Node's parser makes. */
  #parts: Buffer[] = [];
  /** Fields that arrived before the head was complete, or trailers. */
  #fields: string[] = [];
  #interim = false;

  /** @throws TypeError if Node's parser is not accessible: see `hasNodeParser`. */
  constructor(events: ResponseEvents, maxHeaderBytes: number) {
    if (NODE_PARSER === undefined) throw new TypeError("Node's parser has changed");
    this.#events = events;
    this.#parser = new NODE_PARSER();
    this.#parser.initialize(NODE_PARSER.RESPONSE, {}, maxHeaderBytes, NODE_PARSER.kLenientNone);
    this.#parser[NODE_PARSER.kOnMessageBegin] = () => {
      events.onBegin();
    };
    this.#parser[NODE_PARSER.kOnHeaders] = (fields: string[]) => void this.#fields.push(...fields);
    this.#parser[NODE_PARSER.kOnHeadersComplete] = this.#onHead;
    this.#parser[NODE_PARSER.kOnBody] = (part: Buffer) => void this.#parts.push(part);
    this.#parser[NODE_PARSER.kOnMessageComplete] = () => {
      this.#onEnd();
    };
  }

  /**
   * Parses what has arrived at the beginning of `READ_BUFFER`.
   *
   * @throws Error with the code of llhttp, or what the events throw.
   */
  read(bytes: number): void {
    const parsed = this.#parser.execute(READ_BUFFER.subarray(0, bytes));
    if (parsed instanceof Error) throw parsed;
    this.#passBody();
  }

  /** Ends a response without a length at the end of the connection. An incomplete response does not end. */
  finish(): void {
    try {
      this.#parser.finish();
    } catch {
      // A handler failed.
    }
  }

  /** Frees the parser. Must not be called while it parses. */
  close(): void {
    this.#parser.close();
  }

  readonly #onHead = (
    _major: number,
    _minor: number,
    all: string[] | undefined,
    _method: unknown,
    _url: unknown,
    status: number,
    statusMessage: string,
    upgrade: boolean,
    keepAlive: boolean,
  ): number => {
    // No request asked to switch protocols, and RFC 9110 §15 has no status below 100.
    if (upgrade || status === 101 || status < 100) throw new BackendFault("invalid_status");
    this.#interim = status < 200;
    const isBodiless = this.#events.onHead(status, statusMessage, all ?? this.#taken(), keepAlive);
    return isBodiless ? WITHOUT_BODY : 0;
  };

  #passBody(): void {
    const parts = this.#parts;
    const [first] = parts;
    if (first === undefined) return;
    this.#parts = [];
    this.#events.onBody(parts.length === 1 ? first : Buffer.concat(parts));
  }

  #onEnd(): void {
    if (this.#interim) return;
    this.#passBody();
    this.#events.onEnd(this.#fields.length === 0 ? undefined : this.#taken());
  }

  #taken(): string[] {
    const fields = this.#fields;
    this.#fields = [];
    return fields;
  }
}

/**
 * Whether Node's parser has the interface that this file expects, and copies what it passes on of a body. `serve` does not start
 * on a Node without it.
 */
export function hasNodeParser(): boolean {
  if (NODE_PARSER === undefined) return false;
  let body: Buffer | undefined;
  const events = {
    onBegin: () => undefined,
    onHead: () => false,
    onBody: (part: Buffer) => {
      body = part;
    },
    onEnd: () => undefined,
  };
  try {
    const parser = new ResponseParser(events, 1024);
    const bytes = READ_BUFFER.write("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody", "latin1");
    parser.read(bytes);
    parser.close();
    READ_BUFFER.fill(0, 0, bytes);
  } catch {
    return false;
  }
  return body?.toString() === "body";
}

/** `node:http` does not export its parser, but each connection of a server has one. */
const NODE_PARSER = nodeParserClass();

function nodeParserClass(): NodeParserClass | undefined {
  const connection = new Duplex({
    read: () => undefined,
    write: (_chunk, _encoding, done) => {
      done();
    },
  });
  try {
    createServer().emit("connection", connection);
    const parser: unknown = Reflect.get(connection, "parser");
    const found: unknown =
      typeof parser === "object" && parser !== null ? parser.constructor : undefined;
    return isNodeParserClass(found) ? found : undefined;
  } finally {
    connection.destroy();
  }
}

function isNodeParserClass(found: unknown): found is NodeParserClass {
  return (
    typeof found === "function" &&
    CONSTANTS.every((name) => typeof Reflect.get(found, name) === "number") &&
    ["initialize", "execute", "finish", "close"].every(
      (name) => typeof Reflect.get(Object(found.prototype), name) === "function",
    )
  );
}
