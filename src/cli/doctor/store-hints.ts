import type { StoreSettings } from "../../credentials/stores/store-kinds.ts";

type Kind = StoreSettings["kind"] | "redis";

/** A hint for a user store or state server that is unavailable. The first hint whose `reason` matches applies. */
interface Hint {
  readonly reason: RegExp;
  /** Undefined: any kind. */
  readonly kind?: Kind;
  readonly hint: string;
}

const HINTS: readonly Hint[] = [
  {
    reason: /^ECONNREFUSED/,
    hint: "is the server running and listening at this address and port?",
  },
  {
    reason: /^(?:ENOTFOUND|EAI_AGAIN)/,
    hint: "check the host in `url`, and the DNS of this machine or pod",
  },
  {
    reason: /^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)/,
    hint: "does a firewall or NetworkPolicy let this through?",
  },
  { reason: /ALTNAME/, hint: "the certificate does not match the name in `url`" },
  {
    reason: /EXPIRED|NOT_YET_VALID/,
    hint: "renew the server's certificate, or set the clock of this machine",
  },
  { reason: /SELF_SIGNED|VERIFY|ISSUER/, hint: "set `caFile` to the certificate of its authority" },
  {
    reason: /ERR_SSL|^EPROTO|ECONNRESET/,
    hint: "does this port speak TLS, and does the scheme of `url` match?",
  },
  {
    reason: /\btime|timeout|^Connection terminated/i,
    hint: "the server hangs or is slow, or a firewall drops the connection: raise `timeout` if it needs longer",
  },
  { reason: /credentials of `bind`/, kind: "ldap", hint: "check `bind.dn` and `bind.password`" },
  {
    reason: /^there is no /,
    kind: "ldap",
    hint: "check `search.base` and `groups.base`, and whether `bind` may read them",
  },
  {
    reason: /\(50\)$/,
    kind: "ldap",
    hint: "give the entry of `bind` permission to read and search there",
  },
  {
    reason: /\((?:8|13)\)$/,
    kind: "ldap",
    hint: "the directory requires TLS: use ldaps:// or `startTls: true`",
  },
  { reason: /\(1\)$/, kind: "ldap", hint: "it may require a bind before a search: set `bind`" },
  { reason: /^28P01/, kind: "postgres", hint: "the user or the password in `url` is wrong" },
  {
    reason: /^28000/,
    kind: "postgres",
    hint: "pg_hba.conf does not allow this user from this address",
  },
  {
    reason: /^3D000/,
    kind: "postgres",
    hint: "there is no such database: check the end of `url`",
  },
  { reason: /^42P01/, kind: "postgres", hint: "the query names a table that does not exist" },
  { reason: /^42703/, kind: "postgres", hint: "the query names a column that does not exist" },
  {
    reason: /^42501/,
    kind: "postgres",
    hint: "GRANT the role in `url` SELECT on the tables and columns in the query",
  },
  {
    reason: /^42/,
    kind: "postgres",
    hint: "the query is wrong: try it in psql, with a name for $1",
  },
  {
    reason: /^53300/,
    kind: "postgres",
    hint: "it has no free connection: lower `connections`, or raise max_connections",
  },
  {
    reason: /^53/,
    kind: "postgres",
    hint: "it lacks a resource: 53100 means disk space, 53200 memory",
  },
  { reason: /^57P03/, kind: "postgres", hint: "it is starting up or shutting down" },
  {
    reason: /does not support SSL/,
    kind: "postgres",
    hint: "turn on TLS there (`ssl = on`), or set `tls: false` for clear text",
  },
  { reason: /password_hash/, hint: "docs/users.md lists the columns" },
  {
    reason: /^(?:WRONGPASS|NOAUTH)/,
    kind: "redis",
    hint: "check the user in `url` and `password`; sentinels use `sentinel.password`",
  },
  {
    reason: /^NOPERM/,
    kind: "redis",
    hint: "give the ACL user the permissions in docs/scale.md, for the keys with `prefix`",
  },
  { reason: /^MOVED/, kind: "redis", hint: "set `cluster: true`" },
  {
    reason: /^READONLY/,
    kind: "redis",
    hint: "`url` names a replica: name the primary, or set `sentinel`",
  },
  { reason: /^OOM/, kind: "redis", hint: "its memory is full: raise maxmemory" },
  {
    reason: /^MISCONF/,
    kind: "redis",
    hint: "it cannot write to its disk, and accepts no writes until it can",
  },
  {
    reason: /knows no primary/,
    kind: "redis",
    hint: "compare `sentinel.name` with the output of `SENTINEL masters`",
  },
  {
    reason: /^the query cannot be run/,
    kind: "sqlite",
    hint: "is `path` the database, and does it have the table and columns that the query names?",
  },
  {
    reason: /^status (?:404|405)/,
    kind: "http",
    hint: "does the path in `url` belong to the login, and does it accept POST?",
  },
  {
    reason: /^status 3/,
    kind: "http",
    hint: "Sallyport follows no redirects: set `url` to the final address",
  },
  {
    reason: /^status (?:400|415|422)/,
    kind: "http",
    hint: "does the login accept the body that `format` and `fields` describe?",
  },
  { reason: /^status 429/, kind: "http", hint: "the login throttles Sallyport: exempt it there" },
  {
    reason: /^status /,
    kind: "http",
    hint: "`status` of the store sets the meaning of each status: 200, 401 and 403 by default",
  },
];

/** @returns what an operator can do about it, in one line. */
export function storeHint(kind: Kind, reason: string): string {
  const fits = HINTS.find(
    (each) => each.reason.test(reason) && (each.kind === undefined || each.kind === kind),
  );
  return fits?.hint ?? (kind === "redis" ? "see docs/scale.md" : "see docs/users.md");
}
