import type { Duplex } from "node:stream";
import type pg from "pg";
import { StoreUnavailable } from "../remote/store-unavailable.ts";

/** The largest answer to one question, with what precedes it on a new connection: two rows with a thousand groups fit. */
const LARGEST_ANSWER = 1024 ** 2;

/** A member of the library's connections that its types omit: reads messages from the socket, or from TLS above it. */
interface ReadingConnection extends pg.Connection {
  attachListeners(stream: Duplex): void;
}

function reads(connection: pg.Connection): connection is ReadingConnection {
  return "attachListeners" in connection && typeof connection.attachListeners === "function";
}

/** What reads messages; its type keeps the fields to itself. */
interface Reader {
  readonly buffer: Buffer;
  readonly offset: number;
  string(length: number): string;
}

let bounded = false;

/** After the last byte, the library reads empty texts, and searches them for the end of an error message forever. */
function readNothingBeyond(reader: Pick<Reader, "string">): void {
  if (bounded) return;
  bounded = true;
  const { string } = reader;
  reader.string = function read(this: Reader, length) {
    if (length < 0 || this.offset + length > this.buffer.length) {
      throw new RangeError("a text goes beyond its message");
    }
    return string.call(this, length);
  };
}

/** A question begins, whose answer may be of full size. */
const asks = Symbol("asks");

/**
 * Makes clients for a pool. They close a connection that sends more bytes than an answer may have, or a message that cannot
 * be read, and never send a password in clear text without TLS.
 *
 * @param library of which they are clients: it is loaded when it is needed.
 */
export async function guardedClients({ Client }: Pick<typeof pg, "Client">) {
  const reading = await import("pg-protocol/dist/buffer-reader.js");
  readNothingBeyond(reading.BufferReader.prototype);
  return class extends Client {
    #received = 0;

    constructor(config?: pg.ClientConfig) {
      super(config);
      // The caller gets the error with the answer. Only the pool listens as well, while the connection is idle.
      this.on("error", () => undefined);
      const { connection } = this;
      if (!reads(connection)) throw new Error("the library reads otherwise");
      guard(connection, (bytes) => (this.#received += bytes) <= LARGEST_ANSWER);
      if (config?.ssl === false) keepSecret(connection);
    }

    [asks](): void {
      this.#received = 0;
    }
  };
}

/** Closes a connection whose data is too large or cannot be read, where the library throws. */
function guard(connection: ReadingConnection, takes: (bytes: number) => boolean): void {
  const attach = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const before = new Set(stream.listeners("data"));
    attach(stream);
    const [read] = stream.listeners("data").filter((each) => !before.has(each));
    if (read === undefined) throw new Error("the library reads otherwise");
    stream.removeListener("data", read);
    stream.on("data", (chunk: Buffer) => {
      if (!takes(chunk.length)) {
        stream.destroy(new StoreUnavailable("too large an answer"));
        return;
      }
      try {
        Reflect.apply(read, stream, [chunk]);
      } catch (error) {
        stream.destroy(new StoreUnavailable("an answer that is not understood", error));
      }
    });
  };
}

/** The library's own listener comes later, and finds nothing to write to. */
function keepSecret(connection: pg.Connection): void {
  connection.on("authenticationCleartextPassword", () =>
    connection.stream.destroy(
      new StoreUnavailable("the server asks for the password in clear text: use TLS"),
    ),
  );
}

/** Notifies a client that its next query begins. */
export function begin(client: pg.ClientBase): void {
  if (asks in client && typeof client[asks] === "function") client[asks]();
}
