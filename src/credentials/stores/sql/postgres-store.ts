import { withTimeout } from "../../../lib/async/with-timeout.ts";
import { hashStore } from "../hash-store.ts";
import { StoreAccess } from "../remote/store-access.ts";
import { LATE, remoteFailure } from "../../../lib/text/remote-error.ts";
import { authoritiesIn, Trust } from "../remote/trust.ts";
import type { StoreKind } from "../user-store.ts";
import { PostgresPool } from "./postgres-pool.ts";
import type { PostgresSettings } from "./postgres-settings.ts";
import { columnsFault, sqlUsers } from "./sql-users.ts";

/** The kind of store that looks up password hashes in PostgreSQL. */
export const postgres: StoreKind<PostgresSettings> = {
  async open(settings, { contentOf, log, clock, verifier, queue }) {
    const store = "postgres";
    const { connections, timeout } = settings;
    const trust = new Trust(settings.caFile, contentOf);
    const pool = new PostgresPool(settings, () => trust.authorities);
    const access = new StoreAccess({ store, connections, timeout, queue, log, clock });
    const users = sqlUsers({
      ...{ store, access, log },
      rows: (username, leftMs) => pool.rows(username, leftMs),
    });
    return {
      ...hashStore(users, verifier),
      async reload(latest) {
        if (trust.follow(latest, store, log)) await pool.renew();
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
};
