import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { asSubquery, POSTGRES_HINTS, PostgresPool } from "../../../lib/postgres/postgres-pool.ts";
import { LATE, remoteFailure } from "../../../lib/text/error-code.ts";
import { hashStore } from "../hash-store.ts";
import { openTrust, StoreAccess } from "../remote/store-access.ts";
import type { StoreSettings } from "../store-kinds.ts";
import type { StoreKind } from "../user-store.ts";
import { COLUMNS_HINT, columnsFault, sqlUsers } from "./sql-users.ts";

/** Maximum size of the response to one query, in bytes. Two rows with a thousand groups fit. */
const LARGEST_ANSWER = 1024 ** 2;

/** The kind of store that looks up password hashes in PostgreSQL. */
export const postgres: StoreKind<StoreSettings<"postgres">> = {
  async open(settings, context) {
    const store = "postgres";
    const { log, verifier } = context;
    const trust = openTrust(store, settings.caFile, context);
    const limited = { ...settings, maxBytes: LARGEST_ANSWER };
    const pool = new PostgresPool(limited, trust.authorities);
    const from = `SELECT * FROM ${asSubquery(settings.query)} AS one`;
    const access = new StoreAccess(store, settings, context);
    const users = sqlUsers({
      store,
      access,
      log,
      rows: async (username, leftMs) =>
        (await pool.query(`${from} LIMIT 2`, [username], leftMs)).rows,
    });
    return {
      ...hashStore(users, verifier),
      failing: access.failing,
      async reload(latest) {
        if (trust.follow(latest)) pool.renew();
      },
      connections: () => pool.connections,
      async examine(timeoutMs) {
        try {
          const asked = pool.query(`${from} LIMIT 0`, [""], timeoutMs);
          const answer = await withTimeout(asked, timeoutMs, undefined);
          return answer === undefined ? LATE : columnsFault(answer.columns);
        } catch (error) {
          return remoteFailure(error);
        }
      },
      close: () => pool.close(),
    };
  },

  clearText: ({ url, tls }) => (tls ? undefined : { url, hint: "use TLS" }),

  hints: [...POSTGRES_HINTS, COLUMNS_HINT],
};
