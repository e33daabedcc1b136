import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { hash } from "node:crypto";
import { once } from "node:events";
import { withTimeout } from "../lib/async/with-timeout.ts";
import { codeOrMessage, LATE, RemoteError } from "../lib/text/error-code.ts";
import type { StateServer } from "./state-server.ts";

/** The state server cannot be used. */
export class StateUnavailable extends RemoteError {}

/** Why the state server cannot be used, in words for an operator. */
export function whyUnavailable(error: unknown): string {
  return error instanceof StateUnavailable ? error.message : "an error of our own";
}

/**
 * A server that does not answer within this time is considered hung, in milliseconds. No request waits this long: see
 * `shared.timeout`.
 */
export const DEADLINE_MS = 2_000;
/** The maximum size of a response, in bytes. The largest that we ask for takes less than a tenth of it. */
const LARGEST_ANSWER = 8 * 1024 ** 2;
const TIMED_OUT = Symbol("timed out");
/** The first word of an error reply. */
const ERROR_WORD = /^[A-Z]{2,20}\b/;

/**
 * Prepares a Lua script that the server runs atomically. All keys that scripts write expire, except the two marks by which
 * replicas notice that the server was emptied and whether it has been refilled since.
 */
export function script(lua: string) {
  return { lua, sha1: hash("sha1", lua, "hex") };
}

/** The server's answer to a command is an error. */
class ErrorReply extends Error {}

/** An array of which some items have not arrived. */
class OpenArray {
  readonly items: unknown[] = [];
  readonly length: number;

  constructor(length: number) {
    this.length = length;
  }
}

/** The deepest answer that we ask for has four arrays in each other. */
const DEEPEST = 8;
/** The most items of an array: we ask for 500. A million of them take seconds to look at. */
const MOST_ITEMS = 1_000;
/** The longest line, in bytes: an error, a number or a length. */
const LONGEST_LINE = 65_536;
const LENGTH = /^\d{1,9}$/;

/**
 * Reads the second version of the Redis protocol (RESP2). An array takes memory for the items that have arrived, not for
 * those that it claims: ioredis 6 allocates those, and 220 bytes ended the process.
 */
class ReplyReader {
  #bytes: Buffer = Buffer.alloc(0);
  #at = 0;
  /** Chunks that do not complete the text that is being read, and how many bytes it still needs. */
  #chunks: Buffer[] = [];
  #missing = 0;
  /** The outermost first. */
  readonly #open: OpenArray[] = [];

  /** Returns the replies that a chunk completes. @throws StateUnavailable for anything else. */
  *read(chunk: Buffer): Generator {
    this.#chunks.push(chunk);
    this.#missing -= chunk.length;
    // A text of megabytes in small pieces would otherwise be copied for each of them.
    if (this.#missing > 0) return;
    this.#bytes = Buffer.concat([this.#bytes.subarray(this.#at), ...this.#chunks]);
    this.#chunks = [];
    this.#missing = 0;
    this.#at = 0;
    for (let value = this.#next(); value !== undefined; value = this.#next()) {
      const reply = this.#placed(value);
      if (reply !== undefined) yield reply;
    }
  }

  /** Returns the next text, number, `null`, error, or array without its items; undefined if it has not arrived. */
  #next(): unknown {
    const end = this.#bytes.indexOf("\r\n", this.#at);
    if (end < 0 && this.#bytes.length - this.#at < LONGEST_LINE) return undefined;
    if (end < 0) throw notUnderstood();
    const type = this.#bytes.toString("latin1", this.#at, this.#at + 1);
    const line = this.#bytes.toString("utf8", this.#at + 1, end);
    if (type === "$" && LENGTH.test(line)) return this.#text(end + 2, Number(line));
    this.#at = end + 2;
    if (type === "+") return line;
    if (type === "-") return new ErrorReply(line);
    if (type === ":") return Number(line);
    if ((type === "$" || type === "*") && line === "-1") return null;
    const fits = LENGTH.test(line) && Number(line) <= MOST_ITEMS && this.#open.length < DEEPEST;
    if (type !== "*" || !fits) throw notUnderstood();
    return new OpenArray(Number(line));
  }

  #text(start: number, length: number): string | undefined {
    const end = start + length;
    this.#missing = end + 2 - this.#bytes.length;
    if (this.#missing > 0) return undefined;
    this.#at = end + 2;
    return this.#bytes.toString("utf8", start, end);
  }

  /** Puts a value into the array that it belongs to. @returns the reply if this completes it. */
  #placed(value: unknown): unknown {
    let item = value;
    if (value instanceof OpenArray) {
      if (value.length > 0) return void this.#open.push(value);
      item = value.items;
    }
    for (let array = this.#open.at(-1); array !== undefined; array = this.#open.at(-1)) {
      array.items.push(item);
      if (array.items.length < array.length) return undefined;
      item = array.items;
      this.#open.pop();
    }
    return item;
  }
}

/** How servers answer a password that they do not ask for. */
const NO_PASSWORD = /no password is set|without any password/;

/** One connection to the state server. Any fault closes it, and it never reconnects. */
export class StateConnection {
  readonly #socket: Socket;
  readonly #deadlineMs: number;
  readonly #replies = new ReplyReader();
  /** The commands without an answer, oldest first. */
  readonly #asked: PromiseWithResolvers<unknown>[] = [];
  /** Why the connection failed; undefined if it just ended. */
  #fault: unknown;
  /** Bytes received since the last complete answer. */
  #received = 0;

  private constructor(socket: Socket, deadlineMs: number) {
    this.#socket = socket;
    this.#deadlineMs = deadlineMs;
    socket.on("data", (chunk: Buffer) => this.#receive(chunk));
    // A pending command only learns that the connection ended, not why.
    socket.on("error", (error: unknown) => (this.#fault ??= error));
    socket.once("close", () => {
      for (const { reject } of this.#asked.splice(0)) reject(closed());
    });
  }

  /** @throws StateUnavailable if it is not open within the deadline. */
  static async open(server: StateServer, deadlineMs: number): Promise<StateConnection> {
    const { username, password, database } = server;
    const socket = connectTo(server);
    const connection = new StateConnection(socket, deadlineMs);
    const login = [...(username === undefined ? [] : [username]), password ?? ""];
    const connected = once(socket, server.tls ? "secureConnect" : "connect").then(async () => {
      if (password !== undefined) await connection.#ask("AUTH", login).catch(unlessNotAsked);
      if (database > 0) await connection.#ask("SELECT", [String(database)]);
    });
    await connection.#answered(connected, deadlineMs);
    return connection;
  }

  /** Calls the listener once when either side has closed the connection. */
  onClose(listener: () => void): void {
    this.#socket.once("close", listener);
  }

  /** Runs a command. @throws StateUnavailable after which the connection is closed. */
  call(command: string, ...args: readonly string[]): Promise<unknown> {
    return this.callWithin(this.#deadlineMs, command, ...args);
  }

  /** Like `call` with a different deadline, for commands that wait. */
  callWithin(deadlineMs: number, command: string, ...args: readonly string[]): Promise<unknown> {
    return this.#answered(this.#ask(command, args), deadlineMs);
  }

  /** Runs a script, which the server caches by its hash. @throws StateUnavailable as `call` does. */
  async run(
    { lua, sha1 }: ReturnType<typeof script>,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const operands = [String(keys.length), ...keys, ...args];
    const first = this.#ask("EVALSHA", [sha1, ...operands]).catch((error: unknown) =>
      error instanceof ErrorReply && error.message.startsWith("NOSCRIPT")
        ? this.#ask("EVAL", [lua, ...operands])
        : Promise.reject(error),
    );
    return this.#answered(first, this.#deadlineMs);
  }

  close(): void {
    this.#socket.destroy();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  #receive(chunk: Buffer): void {
    this.#received += chunk.length;
    try {
      if (this.#received > LARGEST_ANSWER) throw new StateUnavailable("too large an answer");
      for (const reply of this.#replies.read(chunk)) {
        const asked = this.#asked.shift();
        if (asked === undefined) throw new StateUnavailable("an answer to no question");
        if (reply instanceof ErrorReply) asked.reject(reply);
        else asked.resolve(reply);
      }
    } catch (error) {
      this.#fault ??= error;
      this.close();
    }
  }

  async #ask(command: string, args: readonly string[]): Promise<unknown> {
    if (this.#socket.destroyed) throw closed();
    const asked = Promise.withResolvers<unknown>();
    this.#asked.push(asked);
    const words = [command, ...args].map((word) => `$${Buffer.byteLength(word)}\r\n${word}\r\n`);
    this.#socket.write(`*${words.length}\r\n${words.join("")}`);
    return asked.promise;
  }

  async #answered(answer: Promise<unknown>, deadlineMs: number): Promise<unknown> {
    try {
      const value = await withTimeout(answer, deadlineMs, TIMED_OUT);
      if (value === TIMED_OUT) throw new StateUnavailable(LATE);
      this.#received = 0;
      return value;
    } catch (error) {
      this.close();
      const cause = this.#fault ?? error;
      if (cause instanceof StateUnavailable) throw cause;
      throw new StateUnavailable(reasonOf(cause), cause);
    }
  }
}

export function notUnderstood(): StateUnavailable {
  return new StateUnavailable("an answer that is not understood");
}

function closed(): StateUnavailable {
  return new StateUnavailable("the connection was closed");
}

/** @throws the error, unless a server says by it that it asks for no password. */
function unlessNotAsked(error: unknown): void {
  if (!(error instanceof ErrorReply && NO_PASSWORD.test(error.message))) throw error;
}

/** Describes an error by its code, or by the first word of an error reply, which quotes nothing that was sent. */
function reasonOf(error: unknown): string {
  const text = codeOrMessage(error);
  const isReply = error instanceof ErrorReply;
  const [word = "an error of the server's"] = SCRIPT_NOPERM.test(text)
    ? ["NOPERM"]
    : (ERROR_WORD.exec(text) ?? []);
  return isReply ? (HINTS[word] ?? word) : text;
}

/** How a server reports that a user lacks the permission for a command in a script. */
const SCRIPT_NOPERM = /^ERR (?:ACL failure in script|The user executing the script)/;
/** Advice for operators, by the first word of the reply. */
const HINTS: Readonly<Record<string, string>> = {
  MOVED: "MOVED, it belongs to a cluster: set shared.cluster",
  READONLY: "READONLY, it is a replica",
  NOAUTH: "NOAUTH, it asks for a password",
  NOPERM: "NOPERM, the user lacks a permission that docs/scale.md lists",
};

function connectTo({ host, port, tls, authorities }: StateServer): Socket {
  const address = { host, port, noDelay: true };
  const socket = tls
    ? connectTls({
        ...address,
        ...(authorities !== undefined && { ca: authorities }),
        ...(isIP(host) === 0 && { servername: host }),
      })
    : connectTcp(address);
  return socket.setKeepAlive(true, 30_000);
}
