import { filePath, flag, text } from "../fields.ts";
import { asking, caFile, query, store, timeout } from "./store-fields.ts";

/** Entries of `users` that look hashes up in a database. */

export function sqliteStore() {
  return store("sqlite", {
    path: filePath({ readAgainBy: "request" }).describe(
      "The database file, opened for reading for each login",
    ),
    query: query(),
    timeout: timeout(),
  });
}

const URL_MESSAGE =
  "must be a URL such as postgres://user:password@host:5432/database, without a query";

export function postgresStore() {
  return store("postgres", {
    url: text()
      .refine(isDatabaseUrl, URL_MESSAGE)
      .describe("URL of the database, with credentials"),
    query: query(),
    tls: flag(true).describe(
      "Whether the connection uses TLS and verifies the certificate; false: clear text",
    ),
    caFile: caFile(),
    ...asking(),
  });
}

function isDatabaseUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, username, pathname, search, hash } = new URL(value);
  const named = hostname !== "" && username !== "" && pathname.length > 1;
  return /^postgres(?:ql)?:$/.test(protocol) && named && search === "" && hash === "";
}
