import { Duplex } from "node:stream";
import { createServer } from "../../lib/http/node-http.ts";
import { UnexpectedStatus } from "./faults.ts";

/** Receives the events of a parser. `read` and `finish` rethrow whatever it throws. */
export interface ResponseEvents {
  /** A message begins, even if no request waits for one. */
  onBegin(): void;
  /** @param fields names and values, alternating, in Latin-1. @returns whether the response has no body, whatever its fields say. */
  onHead(
    status: number,
    statusMessage: string,
    fields: readonly string[],
    keepAlive: boolean,
  ): boolean;
  /** @param part a view of what `read` was given. */
  onBody(part: Buffer): void;
  /** The end of a response that is not interim. @param trailers names and values, alternating. */
  onEnd(trailers: readonly string[]): void;
}

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
  ...(["RESPONSE", "kLenientNone", "kOnMessageBegin", "kOnHeaders"] as const),
  ...(["kOnHeadersComplete", "kOnBody", "kOnMessageComplete"] as const),
];
type Constants = Readonly<Record<(typeof CONSTANTS)[number], number>>;
type NodeParserClass = (new () => NodeParser) & Constants;

/** If this is returned, Node skips the body: for a response to HEAD, or after an interim response. */
const WITHOUT_BODY = 1;

/**
 * Parses the responses on one connection with Node's own parser, llhttp, as strictly as `node:http` does: ambiguous framing
 * is an error.
 */
export class ResponseParser {
  readonly #parser: NodeParser;
  readonly #events: ResponseEvents;
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
    this.#parser[NODE_PARSER.kOnBody] = (part: Buffer) => {
      events.onBody(part);
    };
    this.#parser[NODE_PARSER.kOnMessageComplete] = () => {
      this.#onEnd();
    };
  }

  /** Parses what has arrived. @throws Error with the code of llhttp, or what the events throw. */
  read(bytes: Buffer): void {
    throwIfError(this.#parser.execute(bytes));
  }

  /**
   * Ends the message at the end of the connection, as for a response without a length.
   * @throws like `read`, if it is incomplete.
   */
  finish(): void {
    throwIfError(this.#parser.finish());
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
    if (upgrade || status === 101 || status < 100) throw new UnexpectedStatus();
    this.#interim = status < 200;
    const isBodiless = this.#events.onHead(status, statusMessage, all ?? this.#taken(), keepAlive);
    return isBodiless ? WITHOUT_BODY : 0;
  };

  #onEnd(): void {
    if (!this.#interim) this.#events.onEnd(this.#fields.length === 0 ? NONE : this.#taken());
  }

  #taken(): string[] {
    const fields = this.#fields;
    this.#fields = [];
    return fields;
  }
}

const NONE: readonly string[] = [];

function throwIfError(parsed: Parsed): void {
  if (parsed instanceof Error) throw parsed;
}

/** Whether Node's parser has the interface that this file expects. Otherwise undici reads responses, at a higher cost. */
export function hasNodeParser(): boolean {
  return NODE_PARSER !== undefined;
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
