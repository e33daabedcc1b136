import type { Writable } from "node:stream";
import type { BackendRequest } from "../http/connection.ts";
import { rememberedByName } from "../../lib/text/by-name.ts";
import { RequestBody } from "../http/request-body.ts";
import { BackendFault } from "../http/faults.ts";

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
export interface BodyListener {
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
