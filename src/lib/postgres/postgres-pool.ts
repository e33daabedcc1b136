import type { Duplex } from "node:stream";
import type pg from "pg";
import { RemoteError } from "../text/error-code.ts";

/**
 * A connection with a method that the library's types omit. It reads messages from the socket, or from TLS on top of
 * it.
 */
interface ReadingConnection extends pg.Connection {
  attachListeners(stream: Duplex): void;
}

function reads(connection: pg.Connection): connection is ReadingConnection {
  return "attachListeners" in connection && typeof connection.attachListeners === "function";
}

/** The library's reader of messages. Its type declares these fields as private. */
interface Reader {
  readonly buffer: Buffer;
  readonly offset: number;
  string(length: number): string;
}

let bounded = false;

/**
 * Throws when a message ends too early. The library would read empty strings beyond its end, and look for the end of an
 * error message in them forever.
 */
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

/** A new query begins: its response may be of the maximum size. */
const asks = Symbol("asks");

/**
 * Returns a client class for a pool. Its clients close the connection if a response is too large or unreadable, and
 * never send a password in clear text without TLS.
 *
 * @param library the `pg` module, which is loaded on demand.
 * @param maxBytes the maximum size of the response to one query, including the start of a new connection.
 */
async function guardedClients({ Client }: Pick<typeof pg, "Client">, maxBytes: number) {
  const reading = await import("pg-protocol/dist/buffer-reader.js");
  readNothingBeyond(reading.BufferReader.prototype);
  return class extends Client {
    #received = 0;

    constructor(config?: pg.ClientConfig) {
      super(config);
      // The caller receives the error as the result of its query. The pool listens only while the connection is idle.
      this.on("error", () => undefined);
      const { connection } = this;
      if (!reads(connection)) throw new Error("the pg library does not read as expected");
      guard(connection, (bytes) => (this.#received += bytes) <= maxBytes);
      if (config?.ssl === false) keepSecret(connection);
    }

    [asks](): void {
      this.#received = 0;
    }
  };
}

/**
 * Closes a connection whose data is too large or unreadable, where the library would throw in a listener. Closes it too when our end is
 * closed or the server does not let us in, where the library waits for the server: one that does not close its end would keep a
 * connection for each query.
 */
function guard(connection: ReadingConnection, takes: (bytes: number) => boolean): void {
  const close = (): unknown => connection.stream.destroy();
  connection.on("error", close).on("errorMessage", close);
  connection.once("readyForQuery", () => connection.off("errorMessage", close));
  const attach = connection.attachListeners.bind(connection);
  connection.attachListeners = (stream) => {
    const before = new Set(stream.listeners("data"));
    attach(stream);
    const [read] = stream.listeners("data").filter((each) => !before.has(each));
    if (read === undefined) throw new Error("the pg library does not read as expected");
    stream.removeListener("data", read);
    stream.once("finish", close);
    stream.on("data", (chunk: Buffer) => {
      if (!takes(chunk.length)) {
        stream.destroy(new RemoteError("the answer is too large"));
        return;
      }
      try {
        Reflect.apply(read, stream, [chunk]);
      } catch (error) {
        stream.destroy(new RemoteError("an unreadable answer", error));
      }
    });
  };
}

/** Closes the connection before the library's own listener runs, so that it cannot send the password. */
function keepSecret(connection: pg.Connection): void {
  connection.on("authenticationCleartextPassword", () =>
    connection.stream.destroy(
      new RemoteError("the server asks for the password in clear text: use TLS"),
    ),
  );
}

/** Notifies a client that its next query begins. */
function begin(client: pg.ClientBase): void {
  if (asks in client && typeof client[asks] === "function") client[asks]();
}

export interface PostgresSettings {
  /** With user, password and database. */
  readonly url: string;
  readonly tls: boolean;
  readonly connections: number;
  /** Of a new connection, in milliseconds. */
  readonly timeout: number;
  /** Maximum size of the response to one query, in bytes. */
  readonly maxBytes: number;
}

/** A row of a result, by column name. */
type Row = Readonly<Record<string, unknown>>;

/** How long a connection may be idle. */
const IDLE_MS = 60_000;

/**
 * Types whose values stay text: `bytea`, `date`, `timestamp` and `timestamptz`, and arrays of them. The library reads `\1` as bytes for
 * ever, and dates in the square of their length.
 */
const UNREAD_TYPES: ReadonlySet<number> = new Set([17, 1001, 1082, 1182, 1114, 1115, 1184, 1185]);

/** Connections to PostgreSQL, opened on demand. */
export class PostgresPool {
  readonly #settings: PostgresSettings;
  readonly #authorities: () => string | undefined;
  #pool: Promise<pg.Pool> | undefined;
  #connections = 0;
  #closed = false;

  /** @param authorities returns the PEM of those that may issue the server's certificate; undefined for Node's own. */
  constructor(settings: PostgresSettings, authorities: () => string | undefined) {
    this.#settings = settings;
    this.#authorities = authorities;
  }

  get connections(): number {
    return this.#connections;
  }

  /**
   * Runs a query on a connection that is free. Its server ends it in time, too: it does not notice that nobody waits any more for
   * what waits for a lock, and such queries would take up all of its connections. The limit ends with the transaction, since a
   * pooler may give its connection to others.
   *
   * @param leftMs the time for its response, in milliseconds.
   * @returns the rows, and the names of the columns.
   * @throws RemoteError, or the error of the library or the server.
   */
  async query(text: string, values: readonly string[], leftMs: number) {
    if (this.#closed) throw new RemoteError("the store is closed");
    this.#pool ??= this.#open();
    const client = await (await this.#pool).connect();
    begin(client);
    try {
      // The types of pg lack `query_timeout`.
      const bounded = { query_timeout: leftMs };
      const limit = Math.max(1, Math.ceil(leftMs));
      await client.query({ text: `BEGIN; SET LOCAL statement_timeout = ${limit}`, ...bounded });
      const query = { text, values: [...values], ...bounded };
      const { rows, fields } = await client.query<Row>(query);
      await client.query({ text: "COMMIT", ...bounded });
      client.release();
      return { rows, columns: fields.map(({ name }) => name) };
    } catch (error) {
      await release(client, error, leftMs);
      throw error;
    }
  }

  /**
   * Closes idle connections, and the others after their query. Nobody waits for those: a reload, and those after it, must not
   * wait for a server that hangs. New connections use the current authorities.
   */
  renew(): void {
    void this.#pool?.then((pool) => pool.end()).catch(() => undefined);
    this.#pool = undefined;
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.renew();
  }

  async #open(): Promise<pg.Pool> {
    const { default: pg } = await import("pg");
    const pool = new pg.Pool({
      ...configOf(this.#settings, this.#authorities()),
      Client: await guardedClients(pg, this.#settings.maxBytes),
      types: {
        getTypeParser: (type, format) =>
          UNREAD_TYPES.has(type) ? String : pg.types.getTypeParser(type, format),
      },
    });
    pool.on("connect", () => (this.#connections += 1));
    pool.on("remove", () => (this.#connections -= 1));
    // The server has closed an idle connection; the pool has already removed it.
    pool.on("error", () => undefined);
    return pool;
  }
}

/** An error reply leaves the connection usable after the end of the transaction. */
async function release(client: pg.PoolClient, error: unknown, leftMs: number): Promise<void> {
  const said = error instanceof Error && "severity" in error && error.severity === "ERROR";
  const end = { text: "ROLLBACK", query_timeout: leftMs };
  const ended =
    said &&
    (await client.query(end).then(
      () => true,
      () => false,
    ));
  client.release(!ended);
}

/** Sets every option, since the library takes missing options from the environment. */
function configOf(
  { url, tls, connections, timeout }: PostgresSettings,
  authorities: string | undefined,
): pg.PoolConfig {
  const { hostname, port, username, password, pathname } = new URL(url);
  const user = decodeURIComponent(username);
  return {
    host: hostname.replace(/^\[|\]$/g, ""),
    port: port === "" ? 5432 : Number(port),
    user,
    password: decodeURIComponent(password),
    database: decodeURIComponent(pathname.slice(1)),
    ssl: tls && { rejectUnauthorized: true, ...(authorities !== undefined && { ca: authorities }) },
    max: connections,
    connectionTimeoutMillis: timeout,
    idleTimeoutMillis: IDLE_MS,
    keepAlive: true,
    application_name: "sallyport",
    allowExitOnIdle: true,
  };
}

/** Returns a query as a part of another one. */
export function asSubquery(query: string): string {
  return `(${query.replace(/;\s*$/, "")}\n)`;
}

/** What an operator can do about an error. The codes are those of PostgreSQL, appendix A of its manual. */
export const POSTGRES_HINTS: readonly (readonly [problem: RegExp, hint: string])[] = [
  [/^28P01/, "the user or the password in `url` is wrong"],
  [/^28000/, "pg_hba.conf does not allow this user from this address"],
  [/^3D000/, "there is no such database: check the end of `url`"],
  [/^42P01/, "the query names a table that does not exist"],
  [/^42703/, "the query names a column that does not exist"],
  [/^42501/, "GRANT the role in `url` SELECT on the tables and columns in the query"],
  [/^42/, "the query is wrong: try it in psql, with a name for $1"],
  [/^53300/, "it has no free connection: lower `connections`, or raise max_connections"],
  [/^53/, "it lacks a resource: 53100 means disk space, 53200 memory"],
  [/^57014/, "the query takes longer than `timeout`: pg_stat_activity shows what it waits for"],
  [/^57P03/, "it is starting up or shutting down"],
  [/does not support SSL/, "turn on TLS there (`ssl = on`), or set `tls: false` for clear text"],
];
