import { z } from "zod";
import { duration, filePath, flag, text, whole, settings } from "../fields.ts";
import { LARGEST_USERS_FILE } from "../../credentials/stores/user-store.ts";
import type { StoreKindName } from "../../credentials/stores/store-kinds.ts";
import { POINTER } from "../../credentials/stores/http/http-store.ts";
import { listAt, type PathProblem, repeated, textAt, type Written } from "../written.ts";

/** The section `users`: the settings of each kind of user store. */
export const users = { schema: usersSection, rules: [userProblems] };

function usersSection() {
  const file = store("file", {
    path: usersPath().describe(
      "The users file. Reloaded when it changes; if it is invalid, the old users stay",
    ),
  });
  const htpasswd = store("htpasswd", {
    path: usersPath().describe(
      "A file made by `htpasswd -B`, with bcrypt costs from 4 to 16. Reloaded like a users file",
    ),
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

function store<Kind extends StoreKindName, Shape extends z.ZodRawShape>(
  kind: Kind,
  settings: Shape,
) {
  return z.strictObject({ kind: z.literal(kind).describe("The kind of store"), ...settings });
}

/** The keys that limit queries to a store on another machine. */
function asking() {
  return {
    connections: whole(1, 100)
      .default(4)
      .describe("Logins that may query the store at the same time; further ones wait"),
    timeout: timeout(),
  };
}

function timeout() {
  return duration({ min: 10, max: 30_000 })
    .prefault("3s")
    .describe(
      "Time for the store's answer, including the wait for a connection; then the login gets 503",
    );
}

export function caFile() {
  return filePath()
    .exactOptional()
    .describe("Authorities for the server's certificate, PEM; default: Node's");
}

function query() {
  return z
    .string()
    .min(1, "must not be empty")
    .refine((text) => text.includes("$1"), "must contain $1, which stands for the user name")
    .describe(
      "Query for one user, with $1 for the name; it returns password_hash and, optionally, groups, disabled, name",
    );
}

/** An entry of `users` of the kind `ldap`. */
function ldapStore() {
  return store("ldap", {
    url: text()
      .refine(isDirectoryUrl, "must be ldap://HOST or ldaps://HOST, optionally with a port")
      .describe("URL of the directory"),
    startTls: z
      .boolean()
      .exactOptional()
      .describe(
        "Required for ldap://: whether to turn on TLS by StartTLS; false sends passwords in clear text",
      ),
    caFile: caFile(),
    bind: z
      .strictObject({
        dn: text().describe("Distinguished name"),
        password: text().meta({ writeOnly: true }).describe("Its password"),
      })
      .exactOptional()
      .describe("The account that searches; without it, the search is anonymous"),
    search: z
      .strictObject({
        base: text().describe("Base DN of the users; the search covers the whole subtree"),
        filter: text()
          .regex(/^\(.*=\{username\}.*\)$/, "must be an LDAP filter such as (uid={username})")
          .describe("Filter for one user, with {username}, which is escaped"),
      })
      .describe("How Sallyport finds a user"),
    groups: z
      .strictObject({
        base: text().describe("Base DN of the groups; the search covers the whole subtree"),
        filter: text()
          .regex(/^\(.*=\{(?:dn|username)\}.*\)$/, "must be an LDAP filter such as (member={dn})")
          .describe("Filter for the groups of a user, with {dn} or {username}, which are escaped"),
        attribute: text().default("cn").describe("Attribute with the name of the group"),
      })
      .exactOptional()
      .describe("How Sallyport finds a user's groups; without it, users have none"),
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
  return store("sqlite", {
    path: filePath({ readAgainBy: "request" }).describe(
      "The database file, opened for reading for each login",
    ),
    query: query(),
    timeout: timeout(),
  });
}

const DATABASE_URL =
  "must be a URL such as postgres://user:password@host:5432/database, without a query";

function postgresStore() {
  const { url, ...secured } = database();
  return store("postgres", { url, query: query(), ...secured, ...asking() });
}

/** The keys of a connection to PostgreSQL. */
export function database() {
  return {
    url: text()
      .refine(isDatabaseUrl, DATABASE_URL)
      .describe("URL of the database, with credentials"),
    tls: flag(true).describe(
      "Whether the connection uses TLS and verifies the certificate; false: clear text",
    ),
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
  return store("http", {
    url: text()
      .refine(isLoginUrl, LOGIN_URL)
      .describe("URL of the login service; Sallyport sends name and password by POST"),
    format: z
      .enum(["json", "form", "basic"])
      .default("json")
      .describe(
        "Where Sallyport sends name and password: in the body as JSON or a form, or in the Authorization header",
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
        success: statuses([200]).describe("The password is right"),
        wrong: statuses([401, 403]).describe(
          "Name or password is wrong; Sallyport asks no further store",
        ),
        unknown: statuses([]).describe("Nobody has this name; Sallyport asks the next store"),
      },
    ),
    subject: pointer("/subject").describe(
      "JSON Pointer to the user's name in the response; default: the name from the login",
    ),
    groups: pointer("/groups").describe("JSON Pointer to the list of groups in the response"),
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
