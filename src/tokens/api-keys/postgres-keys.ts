import type { ConfigProblem } from "../../core/config-problem.ts";
import { ProblemCollector } from "../../core/positioned-file.ts";
import { withTimeout } from "../../lib/async/with-timeout.ts";
import {
  asSubquery,
  POSTGRES_HINTS,
  PostgresPool,
  type PostgresSettings,
} from "../../lib/postgres/postgres-pool.ts";
import { LATE, RemoteError } from "../../lib/text/error-code.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { type ApiKeyRow, isApiKeyName, readApiKey } from "./api-key-file.ts";
import type { KeyStoreKind, KeyStoreSettings } from "./key-store-kinds.ts";

/** The query, unless the configuration has another one. */
export const KEY_QUERY =
  "SELECT name, hash, subject, groups, scopes, expires, disabled, created FROM api_keys";

/** The most keys of a store, and the most bytes of all of them as JSON. */
const MOST_ROWS = 20_000;
const MOST_BYTES = 16 * 1024 ** 2;

/** The kind of store that keeps API keys in a table of PostgreSQL. */
export const postgres: KeyStoreKind<KeyStoreSettings<"postgres">> = {
  open(settings, authorities) {
    const limits = { connections: 1, maxBytes: MOST_BYTES };
    return postgresTable({ ...settings, ...limits }, settings.query, authorities);
  },
  nameOf({ url, query }) {
    const { host, pathname } = new URL(url);
    return `${host}${pathname} ${query}`;
  },
  clearText: ({ url, tls }) => (tls ? undefined : { url, hint: "use TLS" }),
  hints: [
    ...POSTGRES_HINTS,
    [/hash|unknown; known are/, "docs/reference/configuration.md lists the columns"],
  ],
};

/** A table of API keys on another machine. */
export type PostgresTable = ReturnType<typeof postgresTable>;

function postgresTable(settings: PostgresSettings, query: string, authorities: string | undefined) {
  const pool = new PostgresPool(settings, () => authorities);
  const { timeout: left } = settings;
  const text = whole(query);
  /** What was found last, if it has a key that cannot be used. It is not read again and again. */
  let wrong: { readonly print: string; readonly error: unknown } | undefined;

  return {
    /**
     * Reads all keys, in a bounded time.
     *
     * @param print the fingerprint of an earlier reading.
     * @returns undefined if they have that fingerprint.
     * @throws RemoteError if a key cannot be used, and other errors if the table cannot be read.
     */
    async readUnless(print: string) {
      const known = [wrong?.print ?? print];
      const answer = await withTimeout(pool.query(text, known, left), left, undefined);
      if (answer === undefined) throw new RemoteError(LATE);
      const [row = {}] = answer.rows;
      if (wrong !== undefined && row["print"] === wrong.print) throw wrong.error;
      wrong = undefined;
      if (row["print"] === print) return undefined;
      const rows = typeof row["keys"] === "string" ? jsonIn(row["keys"]) : undefined;
      if (typeof row["print"] !== "string" || !Array.isArray(rows)) {
        throw new RemoteError("the answer holds no keys");
      }
      try {
        return { print: row["print"], rows: keysIn(rows) };
      } catch (error) {
        wrong = { print: row["print"], error };
        throw error;
      }
    },
    close: (): Promise<void> => pool.close(),
  };
}

/**
 * Returns a query for all rows of another one, as one JSON text, and for their fingerprint, whatever their order. The text comes
 * only if the fingerprint is not the parameter: most of the time, nothing has changed.
 */
function whole(query: string): string {
  return `WITH one AS (SELECT to_json(key)::text AS json FROM ${asSubquery(query)} AS key LIMIT ${MOST_ROWS + 1}),
  found AS (SELECT count(*) || ' ' || coalesce(sum(hashtextextended(json, 0)), 0) AS print FROM one)
SELECT print,
  CASE WHEN print <> $1 THEN (SELECT '[' || coalesce(string_agg(json, ','), '') || ']' FROM one) END AS keys
FROM found`;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new RemoteError("the answer is not JSON", error);
  }
}

/** How PostgreSQL writes the end of what does not end. */
const FOREVER = "infinity";

/** @throws RemoteError for too many keys, or for the first one that cannot be used. */
function keysIn(rows: readonly unknown[]): ApiKeyRow[] {
  if (rows.length > MOST_ROWS) throw new RemoteError(`there are more than ${MOST_ROWS} keys`);
  const names = new Set<string>();
  return rows.map((row, index) => {
    const { name, ...columns } = isJsonObject(row) ? row : {};
    if (typeof name !== "string" || !isApiKeyName(name)) {
      throw new RemoteError(
        `row ${index + 1} has no name of 1 to 63 letters, digits, . _ and - in the column name`,
      );
    }
    if (names.has(name)) throw new RemoteError(`there are two keys named ${name}`);
    names.add(name);
    const problems: ConfigProblem[] = [];
    const known = Object.entries(columns).filter(
      ([column, value]) => value !== null && !(column === "expires" && value === FOREVER),
    );
    const key = readApiKey(
      name,
      Object.fromEntries(known.map(([column, value]) => [column, listed(column, value)])),
      new ProblemCollector(() => ({}), name, problems),
    );
    const [problem] = problems;
    if (problem !== undefined) throw new RemoteError(`the key ${name}: ${problem.message}`);
    return key;
  });
}

/** Returns a column as a file would have it: a list may also be a text with commas. */
function listed(column: string, value: unknown): unknown {
  if (!["groups", "scopes"].includes(column) || typeof value !== "string") return value;
  return value.split(",").flatMap((each) => each.trim() || []);
}
