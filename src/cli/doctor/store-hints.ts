import type { StoreSettings } from "../../credentials/stores/store-kinds.ts";

type Kind = StoreSettings["kind"] | "redis";

/** What to do about a reason why a user store or state server cannot be asked. The first that fits is taken. */
interface Hint {
  readonly reason: RegExp;
  /** Left out: of any kind. */
  readonly kind?: Kind;
  readonly hint: string;
}

const HINTS: readonly Hint[] = [
  { reason: /^ECONNREFUSED/, hint: "does the server run, and listen at this address and port?" },
  {
    reason: /^(?:ENOTFOUND|EAI_AGAIN)/,
    hint: "look at the host of `url`, and at the DNS of this machine or pod",
  },
  {
    reason: /^(?:EHOSTUNREACH|ENETUNREACH|ETIMEDOUT)/,
    hint: "does a firewall or NetworkPolicy let this through?",
  },
  { reason: /ALTNAME/, hint: "the certificate is for another name than that in `url`" },
  {
    reason: /EXPIRED|NOT_YET_VALID/,
    hint: "renew the certificate of the server, or set the clock of this machine",
  },
  { reason: /SELF_SIGNED|VERIFY|ISSUER/, hint: "set `caFile`: the certificate of its authority" },
  {
    reason: /ERR_SSL|^EPROTO|ECONNRESET/,
    hint: "does this port speak TLS, and does `url` say so?",
  },
  {
    reason: /\btime|timeout|^Connection terminated/i,
    hint: "it hangs or is slow, or a firewall drops the connection: raise `timeout` if it needs longer",
  },
  { reason: /credentials of `bind`/, kind: "ldap", hint: "look at `bind.dn` and `bind.password`" },
  {
    reason: /^there is no /,
    kind: "ldap",
    hint: "look at `search.base` and `groups.base`, and at what the directory lets `bind` see",
  },
  { reason: /\(50\)$/, kind: "ldap", hint: "let the entry of `bind` read and search there" },
  {
    reason: /\((?:8|13)\)$/,
    kind: "ldap",
    hint: "the directory wants TLS: use ldaps:// or `startTls: true`",
  },
  { reason: /\(1\)$/, kind: "ldap", hint: "it may want a bind before a search: set `bind`" },
  { reason: /^28P01/, kind: "postgres", hint: "the user or the password in `url` is wrong" },
  { reason: /^28000/, kind: "postgres", hint: "pg_hba.conf does not let this user in from here" },
  {
    reason: /^3D000/,
    kind: "postgres",
    hint: "there is no such database: look at the end of `url`",
  },
  { reason: /^42P01/, kind: "postgres", hint: "the query names a table that is not there" },
  { reason: /^42703/, kind: "postgres", hint: "the query names a column that is not there" },
  {
    reason: /^42501/,
    kind: "postgres",
    hint: "GRANT the role of `url` SELECT on what the query names",
  },
  {
    reason: /^42/,
    kind: "postgres",
    hint: "the query is wrong: try it in psql, with a name for $1",
  },
  {
    reason: /^53300/,
    kind: "postgres",
    hint: "it has no connection left: lower `connections`, or raise max_connections",
  },
  {
    reason: /^53/,
    kind: "postgres",
    hint: "it lacks a resource: 53100 is a full disk, 53200 memory",
  },
  { reason: /^57P03/, kind: "postgres", hint: "it is starting up or shutting down" },
  {
    reason: /does not support SSL/,
    kind: "postgres",
    hint: "switch its TLS on (`ssl = on`), or set `tls: false` for clear text",
  },
  { reason: /password_hash/, hint: "docs/users.md lists the columns" },
  {
    reason: /^(?:WRONGPASS|NOAUTH)/,
    kind: "redis",
    hint: "look at the user in `url`, and at `password`; sentinels have `sentinel.password`",
  },
  {
    reason: /^NOPERM/,
    kind: "redis",
    hint: "give the ACL user what docs/scale.md lists, for the keys of `prefix`",
  },
  { reason: /^MOVED/, kind: "redis", hint: "set `cluster: true`" },
  {
    reason: /^READONLY/,
    kind: "redis",
    hint: "`url` leads to a replica: name the primary, or set `sentinel`",
  },
  { reason: /^OOM/, kind: "redis", hint: "its memory is full: raise maxmemory" },
  {
    reason: /^MISCONF/,
    kind: "redis",
    hint: "it cannot write to its disk, and takes nothing until it can",
  },
  {
    reason: /knows no primary/,
    kind: "redis",
    hint: "look at `sentinel.name`, and at what `SENTINEL masters` lists",
  },
  {
    reason: /^the query cannot be run/,
    kind: "sqlite",
    hint: "is `path` the database, and does it have the table and columns that the query names?",
  },
  {
    reason: /^status (?:404|405)/,
    kind: "http",
    hint: "is the path of `url` the login, and does it take POST?",
  },
  {
    reason: /^status 3/,
    kind: "http",
    hint: "redirects are not followed: name the last address in `url`",
  },
  {
    reason: /^status (?:400|415|422)/,
    kind: "http",
    hint: "does the login take what `format` and `fields` say?",
  },
  { reason: /^status 429/, kind: "http", hint: "the login throttles Sallyport: exempt it there" },
  {
    reason: /^status /,
    kind: "http",
    hint: "`status` of the store says what a status means: 200, 401 and 403 by default",
  },
];

/** @returns what an operator can do about it, in one line. */
export function storeHint(kind: Kind, reason: string): string {
  const fits = HINTS.find(
    (each) => each.reason.test(reason) && (each.kind === undefined || each.kind === kind),
  );
  return fits?.hint ?? (kind === "redis" ? "see docs/scale.md" : "see docs/users.md");
}
