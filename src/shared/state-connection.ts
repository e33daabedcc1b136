import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { hash } from "node:crypto";
import type { Redis } from "ioredis";
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
/** How long the server may take to close a connection that we close, in milliseconds. */
const DISCONNECT_MS = 100;
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

/** One connection to the state server. Any fault closes it, and it never reconnects. */
export class StateConnection {
  readonly #redis: Redis;
  readonly #deadlineMs: number;
  /** Why the connection failed, such as wrong credentials; undefined if it just ended. */
  #fault: unknown;
  /** Bytes received since the last complete answer. */
  #received = 0;

  private constructor(redis: Redis, deadlineMs: number) {
    this.#redis = redis;
    this.#deadlineMs = deadlineMs;
    // A pending command only learns that the connection ended, not why.
    redis.on("error", (error: unknown) => (this.#fault ??= error));
  }

  /** @throws StateUnavailable if it is not open within the deadline. */
  static async open(server: StateServer, deadlineMs: number): Promise<StateConnection> {
    const library = await import("ioredis");
    let connection: StateConnection | undefined;
    class Connector extends library.AbstractConnector {
      constructor() {
        super(DISCONNECT_MS);
      }

      async connect(): Promise<Socket> {
        this.connecting = true;
        const socket = connectTo(server);
        this.stream = socket;
        socket.on("data", (chunk: Buffer) => connection?.receive(chunk.length, socket));
        return socket;
      }
    }
    const { username, password } = server;
    const redis = new library.Redis({
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      db: server.database,
      lazyConnect: true,
      retryStrategy: () => null,
      autoResendUnfulfilledCommands: false,
      enableOfflineQueue: false,
      enableReadyCheck: false,
      disableClientInfo: true,
      disconnectTimeout: DISCONNECT_MS,
      connectTimeout: deadlineMs,
      protocol: 2,
      ...(server.tls && { tls: {} }),
      Connector,
    });
    connection = new StateConnection(redis, deadlineMs);
    await connection.#answered(redis.connect(), deadlineMs);
    return connection;
  }

  /** Calls the listener once when either side has closed the connection. */
  onClose(listener: () => void): void {
    this.#redis.once("end", listener);
  }

  /** Runs a command. @throws StateUnavailable after which the connection is closed. */
  call(command: string, ...args: readonly string[]): Promise<unknown> {
    return this.callWithin(this.#deadlineMs, command, ...args);
  }

  /** Like `call` with a different deadline, for commands that wait. */
  callWithin(deadlineMs: number, command: string, ...args: readonly string[]): Promise<unknown> {
    return this.#answered(this.#redis.call(command, ...args), deadlineMs);
  }

  /** Runs a script, which the server caches by its hash. @throws StateUnavailable as `call` does. */
  async run(
    { lua, sha1 }: ReturnType<typeof script>,
    keys: readonly string[],
    args: readonly string[],
  ): Promise<unknown> {
    const operands = [String(keys.length), ...keys, ...args];
    const first = this.#redis
      .call("EVALSHA", sha1, ...operands)
      .catch((error: unknown) =>
        error instanceof Error && error.message.startsWith("NOSCRIPT")
          ? this.#redis.call("EVAL", lua, ...operands)
          : Promise.reject(error),
      );
    return this.#answered(first, this.#deadlineMs);
  }

  close(): void {
    this.#redis.disconnect();
  }

  [Symbol.dispose](): void {
    this.close();
  }

  receive(bytes: number, socket: Socket): void {
    this.#received += bytes;
    if (this.#received > LARGEST_ANSWER)
      socket.destroy(new StateUnavailable("too large an answer"));
  }

  async #answered(answer: Promise<unknown>, deadlineMs: number): Promise<unknown> {
    try {
      const value = await withTimeout(answer, deadlineMs, TIMED_OUT);
      if (value === TIMED_OUT) throw new StateUnavailable(LATE);
      this.#received = 0;
      return value;
    } catch (error) {
      this.close();
      if (error instanceof StateUnavailable) throw error;
      const cause = this.#fault ?? error;
      throw new StateUnavailable(reasonOf(cause), cause);
    }
  }
}

/** Describes an error by its code, or by the first word of an error reply, which quotes nothing that was sent. */
function reasonOf(error: unknown): string {
  const text = codeOrMessage(error);
  const isReply = error instanceof Error && error.name === "ReplyError";
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
