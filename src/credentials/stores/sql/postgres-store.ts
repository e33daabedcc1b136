import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { hashStore } from "../hash-store.ts";
import { authoritiesIn, StoreAccess, Trust } from "../remote/store-access.ts";
import { LATE, remoteFailure } from "../../../lib/text/error-code.ts";
import type { StoreKind } from "../user-store.ts";
import { PostgresPool, type PostgresSettings } from "./postgres-pool.ts";
import { COLUMNS_HINT, columnsFault, sqlUsers } from "./sql-users.ts";

/** The kind of store that looks up password hashes in PostgreSQL. */
export const postgres: StoreKind<PostgresSettings> = {
  async open(settings, context) {
    const store = "postgres";
    const { log, verifier } = context;
    const trust = new Trust(store, settings.caFile, context);
    const pool = new PostgresPool(settings, () => trust.authorities);
    const access = new StoreAccess(store, settings, context);
    const users = sqlUsers({
      store,
      access,
      log,
      rows: (username, leftMs) => pool.rows(username, leftMs),
    });
    return {
      ...hashStore(users, verifier),
      failing: access.failing,
      async reload(latest) {
        if (trust.follow(latest)) await pool.renew();
      },
      connections: () => pool.connections,
      async examine(timeoutMs) {
        try {
          const columns = await withTimeout(pool.columns(timeoutMs), timeoutMs, undefined);
          return columns === undefined ? LATE : columnsFault(columns);
        } catch (error) {
          return remoteFailure(error);
        }
      },
      close: () => pool.close(),
    };
  },

  async inspect({ caFile }, contentOf) {
    authoritiesIn(caFile, contentOf);
    return undefined;
  },

  clearText: ({ url, tls }) => (tls ? undefined : { url, hint: "use TLS" }),

  // The codes are those of PostgreSQL, appendix A of its manual.
  hints: [
    { reason: /^28P01/, hint: "the user or the password in `url` is wrong" },
    { reason: /^28000/, hint: "pg_hba.conf does not allow this user from this address" },
    { reason: /^3D000/, hint: "there is no such database: check the end of `url`" },
    { reason: /^42P01/, hint: "the query names a table that does not exist" },
    { reason: /^42703/, hint: "the query names a column that does not exist" },
    {
      reason: /^42501/,
      hint: "GRANT the role in `url` SELECT on the tables and columns in the query",
    },
    { reason: /^42/, hint: "the query is wrong: try it in psql, with a name for $1" },
    {
      reason: /^53300/,
      hint: "it has no free connection: lower `connections`, or raise max_connections",
    },
    { reason: /^53/, hint: "it lacks a resource: 53100 means disk space, 53200 memory" },
    { reason: /^57P03/, hint: "it is starting up or shutting down" },
    {
      reason: /does not support SSL/,
      hint: "turn on TLS there (`ssl = on`), or set `tls: false` for clear text",
    },
    COLUMNS_HINT,
  ],
};
