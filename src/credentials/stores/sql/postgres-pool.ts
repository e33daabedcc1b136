import type { Pool, PoolClient, PoolConfig } from "pg";
import { StoreUnavailable } from "../remote/store-access.ts";
import { begin, guardedClients } from "./postgres-client.ts";
import type { Row } from "./sql-users.ts";

export interface PostgresSettings {
  readonly url: string;
  readonly query: string;
  readonly tls: boolean;
  readonly caFile?: string;
  readonly connections: number;
  /** Milliseconds. */
  readonly timeout: number;
}

/** How long a connection may be idle. */
const IDLE_MS = 60_000;

/** Connections to PostgreSQL, opened on demand. */
export class PostgresPool {
  readonly #settings: PostgresSettings;
  readonly #authorities: () => string | undefined;
  #pool: Promise<Pool> | undefined;
  #connections = 0;
  #closed = false;

  constructor(settings: PostgresSettings, authorities: () => string | undefined) {
    this.#settings = settings;
    this.#authorities = authorities;
  }

  get connections(): number {
    return this.#connections;
  }

  /** Returns at most two rows. @throws StoreUnavailable, or the error of the library or the server. */
  async rows(username: string, leftMs: number): Promise<readonly Row[]> {
    const result = await this.#query(
      `SELECT * FROM (${this.#inner()}\n) AS one LIMIT 2`,
      [username],
      leftMs,
    );
    return result.rows;
  }

  /** Returns the names of the columns of the query. */
  async columns(leftMs: number): Promise<readonly string[]> {
    const result = await this.#query(
      `SELECT * FROM (${this.#inner()}\n) AS one LIMIT 0`,
      [""],
      leftMs,
    );
    return result.fields;
  }

  /** Closes idle connections. New ones use the current authorities. */
  async renew(): Promise<void> {
    const before = this.#pool;
    this.#pool = undefined;
    await (await before)?.end();
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.renew();
  }

  #inner(): string {
    return this.#settings.query.replace(/;\s*$/, "");
  }

  async #query(
    text: string,
    values: readonly string[],
    leftMs: number,
  ): Promise<{ readonly rows: readonly Row[]; readonly fields: readonly string[] }> {
    if (this.#closed) throw new StoreUnavailable("the store is closed");
    this.#pool ??= this.#open();
    const client = await (await this.#pool).connect();
    begin(client);
    try {
      // The types of pg lack `query_timeout`.
      const query = { text, values: [...values], query_timeout: leftMs };
      const { rows, fields } = await client.query<Row>(query);
      client.release();
      return { rows, fields: fields.map(({ name }) => name) };
    } catch (error) {
      // An error reply leaves the connection usable.
      release(client, error);
      throw error;
    }
  }

  async #open(): Promise<Pool> {
    const { default: pg } = await import("pg");
    const pool = new pg.Pool({
      ...configOf(this.#settings, this.#authorities()),
      Client: await guardedClients(pg),
    });
    pool.on("connect", () => (this.#connections += 1));
    pool.on("remove", () => (this.#connections -= 1));
    // The server has closed an idle connection; the pool has already removed it.
    pool.on("error", () => undefined);
    return pool;
  }
}

function release(client: PoolClient, error: unknown): void {
  const said = error instanceof Error && "severity" in error && error.severity === "ERROR";
  client.release(!said);
}

/** Sets every option, since the library takes missing options from the environment. */
function configOf(
  { url, tls, connections, timeout }: PostgresSettings,
  authorities: string | undefined,
): PoolConfig {
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
