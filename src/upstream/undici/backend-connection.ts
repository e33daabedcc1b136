import type { Socket } from "node:net";
import type { Dispatcher, buildConnector } from "undici";
import { pushTo, replacePush } from "../../lib/node-internals/stream-push.ts";
import type { AnswerHandler, Connection } from "../http/connection.ts";
import { countGarbage } from "../http/scavenger.ts";
import { Client, kParser } from "./undici-parts.ts";

/** The current socket of an undici client. */
class CurrentSocket implements Connection {
  #socket: Socket | undefined;
  #used = false;

  /** Replaces a socket that was lost. */
  replace(socket: Socket): void {
    this.#socket = socket;
    this.#used = false;
  }

  get socket(): Socket | undefined {
    return this.#socket;
  }

  begin(): boolean {
    const before = this.#used;
    this.#used = true;
    return before;
  }

  get writableNeedDrain(): boolean {
    return this.#socket?.writableNeedDrain === true;
  }

  /** Called when undici has attached its parser to the socket. */
  connected(): void {
    if (this.#socket !== undefined) correctParser(this.#socket);
  }
}

/** One keep-alive connection to a backend, which reconnects when it is lost. */
export class BackendConnection extends Client {
  readonly #current: CurrentSocket;

  constructor(origin: URL, options: Client.Options, connector: buildConnector.connector) {
    const current = new CurrentSocket();
    super(origin, {
      ...options,
      // Otherwise the environment could choose another parser (UNDICI_USE_MILO).
      useMilo: false,
      connect: (where, connected) =>
        connector(where, (...made) => {
          const [, socket] = made;
          if (socket !== null) {
            countReads(socket);
            current.replace(socket);
          }
          connected(...made);
        }),
    });
    this.#current = current;
    this.on("connect", () => current.connected());
  }

  /**
   * Passes the connection to the handler, since undici does not. undici would derive the server name from Host, and reconnect
   * whenever a client sends another.
   */
  override dispatch(
    options: Dispatcher.DispatchOptions,
    handler: Dispatcher.DispatchHandler & Partial<Pick<AnswerHandler, "onConnection">>,
  ): boolean {
    handler.onConnection?.(this.#current);
    const named = { ...options, servername: "fixed.invalid" };
    return super.dispatch(named, handler);
  }
}

/**
 * Counts what is read from a backend, so that its buffers are freed in time: the parser reports neither chunk extensions,
 * nor heads and trailers before they are complete. A backend that sent nothing else took 230 MiB instead of 125.
 */
function countReads(socket: Socket): void {
  replacePush(socket, (chunk, encoding) => {
    if (chunk !== null) countGarbage(chunk.length);
    return pushTo(socket, chunk, encoding);
  });
}

/** The part of undici's response parser that is used here. */
interface AnswerParser {
  statusText: string;
  onStatus(part: Buffer): number;
  onHeadersComplete(status: number, upgrade: boolean, shouldKeepAlive: boolean): number;
}

/** An interim status that undici ignores. */
const PROCESSING = 102;

/**
 * Corrects two faults of undici's parser (8.12). Called once for each connection.
 *
 * - An unsolicited interim 100 closes the connection, although a client must ignore it (RFC 9110 §15.2). Reported as 102,
 *   it is ignored.
 * - The reason phrase is decoded as UTF-8, which loses other bytes, and loses its beginning if it arrives in two segments.
 *   Latin-1 keeps every byte (RFC 9112 §4).
 *
 * The parser is private to undici. If it looks different, nothing is changed, and both cases result in a 502.
 */
function correctParser(socket: Socket): void {
  const parser: unknown = kParser === undefined ? undefined : Reflect.get(socket, kParser);
  if (!isAnswerParser(parser)) return;
  const onHeadersComplete = parser.onHeadersComplete.bind(parser);
  parser.onStatus = (part) => {
    parser.statusText += part.toString("latin1");
    return 0;
  };
  parser.onHeadersComplete = (status, upgrade, shouldKeepAlive) =>
    onHeadersComplete(status === 100 ? PROCESSING : status, upgrade, shouldKeepAlive);
}

/** Whether the parser has the members that are replaced. */
function isAnswerParser(parser: unknown): parser is AnswerParser {
  return (
    typeof parser === "object" &&
    parser !== null &&
    "statusText" in parser &&
    "onStatus" in parser &&
    typeof parser.onStatus === "function" &&
    "onHeadersComplete" in parser &&
    typeof parser.onHeadersComplete === "function"
  );
}
