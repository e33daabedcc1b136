import { z } from "zod";
import {
  duration,
  filePath,
  flag,
  mapping,
  oneOf,
  optional,
  optionalMapping,
  settings,
  text,
  whole,
} from "../fields.ts";
import { LARGEST_USERS_FILE } from "../../credentials/stores/user-store.ts";
import { POINTER } from "../../credentials/stores/http/http-store.ts";
import { listAt, type PathProblem, repeated, textAt, type Written } from "../written.ts";

/** The section `users`: the settings of each kind of user store. */
export const users = { schema: usersSection, rules: [userProblems] };

function usersSection() {
  const file = store("file", "Users in a YAML file", {
    path: usersPath().describe("The users file; while it is invalid, the old users stay"),
  });
  const htpasswd = store("htpasswd", "Users in a file of Apache's htpasswd", {
    path: usersPath().describe("A file made by `htpasswd -B`, with bcrypt costs from 4 to 16"),
  });
  const elsewhere = [ldapStore(), postgresStore(), sqliteStore(), httpStore()] as const;
  return z
    .array(z.discriminatedUnion("kind", [file, htpasswd, ...elsewhere]))
    .default([])
    .describe("User stores, in the order in which Sallyport tries them");
}

/** The path of a file with users and their hashes, which the store watches. */
function usersPath() {
  return filePath({
    readAgainBy: "reader",
    secret: true,
    maxBytes: LARGEST_USERS_FILE,
  });
}

/** An entry of a list of stores. */
export function store<Kind extends string, Shape extends z.ZodRawShape>(
  kind: Kind,
  about: string,
  settings: Shape,
) {
  return z.strictObject({ kind: z.literal(kind).describe(about), ...settings });
}

/** The keys that limit queries to a store on another machine. */
function asking() {
  return {
    connections: whole(1, 100).default(4).describe("Concurrent logins; further ones wait"),
    timeout: timeout(),
  };
}

export function timeout() {
  return duration({ min: 10, max: 30_000 })
    .prefault("3s")
    .describe("Time for connection and response; then 503");
}

export function caFile() {
  return optional("Authorities, PEM; default: Node's", filePath());
}

function query() {
  return z
    .string()
    .min(1, "must not be empty")
    .refine((text) => text.includes("$1"), "must contain $1, which stands for the user name")
    .describe(
      "Query for the user $1; it returns password_hash and optionally groups, disabled, name",
    );
}

/** An entry of `users` of the kind `ldap`. */
function ldapStore() {
  return store("ldap", "Users in a directory", {
    url: text()
      .refine(isDirectoryUrl, "must be ldap://HOST or ldaps://HOST, optionally with a port")
      .describe("ldaps://HOST or ldap://HOST"),
    startTls: z
      .boolean()
      .exactOptional()
      .describe("Required for ldap://: true, or false to send passwords in clear text"),
    caFile: caFile(),
    bind: optionalMapping("Account for the search; default: anonymous", {
      dn: text().describe("Distinguished name"),
      password: text().meta({ writeOnly: true }).describe("Its password"),
    }),
    search: mapping("How to find a user", {
      base: text().describe("Base DN, with its whole subtree"),
      filter: text()
        .regex(/^\(.*=\{username\}.*\)$/, "must be an LDAP filter such as (uid={username})")
        .describe("Filter with {username}, which is escaped"),
    }),
    groups: optionalMapping("How to find a user's groups; default: none", {
      base: text().describe("Base DN, with its whole subtree"),
      filter: text()
        .regex(/^\(.*=\{(?:dn|username)\}.*\)$/, "must be an LDAP filter such as (member={dn})")
        .describe("Filter with {dn} or {username}, which are escaped"),
      attribute: text().default("cn").describe("Attribute with a group's name"),
    }),
    ...asking(),
  }).refine(({ url, startTls }) => url.startsWith("ldap:") === (startTls !== undefined), {
    path: ["startTls"],
    message:
      "is required for ldap:// and not allowed for ldaps://: true, or false to send passwords in clear text",
  });
}

function isDirectoryUrl(value: string): boolean {
  return /^ldaps?:\/\/(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\/?$/.test(value);
}

function sqliteStore() {
  return store("sqlite", "Users in a SQLite file", {
    path: filePath({ readAgainBy: "request" }).describe("The database, opened for each login"),
    query: query(),
    timeout: timeout(),
  });
}

const DATABASE_URL =
  "must be a URL such as postgres://user:password@host:5432/database, without a query";

function postgresStore() {
  const { url, ...secured } = database();
  return store("postgres", "Users in PostgreSQL", { url, query: query(), ...secured, ...asking() });
}

/** The keys of a connection to PostgreSQL. */
export function database() {
  return {
    url: text().refine(isDatabaseUrl, DATABASE_URL).describe("URL with credentials"),
    tls: flag(true).describe("Whether to use TLS and verify the certificate"),
    caFile: caFile(),
  };
}

function isDatabaseUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, pathname, search, hash } = new URL(value);
  const named = hostname !== "" && username !== "" && pathname.length > 1;
  return /^postgres(?:ql)?:$/.test(protocol) && named && search === "" && hash === "";
}

const LOGIN_URL = "must be an http or https URL without credentials and fragment";

/** An entry of `users` of the kind `http`. */
function httpStore() {
  return store("http", "Users of a login service", {
    url: text().refine(isLoginUrl, LOGIN_URL).describe("URL that gets name and password by POST"),
    format: oneOf(["json", "form", "basic"], "json").describe(
      "How they are sent: JSON or a form in the body, or the Authorization header",
    ),
    fields: z
      .strictObject({
        username: text().default("username").describe("Field with the name"),
        password: text().default("password").describe("Field with the password"),
      })
      .refine(({ username, password }) => username !== password, "must be two different names")
      .prefault({})
      .describe("Names of the two fields in the body"),
    status: settings(
      "What the status of the response means; with any other status, the login gets 503",
      {
        success: statuses([200]).describe(
          "Statuses of a right password; statuses in none of these lists: 503",
        ),
        wrong: statuses([401, 403]).describe(
          "Statuses of a wrong name or password; no further store is asked",
        ),
        unknown: statuses([]).describe("Statuses of an unknown name; the next store is asked"),
      },
    ),
    subject: pointer("/subject").describe(
      "JSON Pointer to the name in the response; if there is none, the name of the login counts",
    ),
    groups: pointer("/groups").describe("JSON Pointer to the list of groups"),
    caFile: caFile(),
    ...asking(),
  });
}

function statuses(preset: number[]) {
  return z.array(whole(200, 599)).default(preset);
}

function pointer(preset: string) {
  return z
    .string()
    .regex(POINTER, "must be a JSON Pointer (RFC 6901), such as /user/name")
    .default(preset);
}

function isLoginUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  const credentials = username !== "" || password !== "";
  return /^https?:$/.test(protocol) && !credentials && !value.includes("#");
}

function userProblems({ whole }: Written): PathProblem[] {
  const stores = [...listAt(whole, "users").entries()];
  const message = "is the same file as that of another entry";
  return repeated(stores, ([, store]) => textAt(store, "path")).map(([index]) => ({
    path: ["users", index, "path"],
    message,
  }));
}
