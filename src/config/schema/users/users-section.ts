import { z } from "zod";
import { LARGEST_USERS_FILE } from "../../../credentials/stores/user-store.ts";
import { postgresStore, sqliteStore } from "./database-store-section.ts";
import { filePath } from "../fields.ts";
import { httpStore } from "./http-store-section.ts";
import { ldapStore } from "./ldap-store-section.ts";
import { store } from "./store-fields.ts";

/** The section `users`: the settings of each kind of user store. */
export function usersSection(directory: string) {
  const file = store("file", {
    path: usersPath(directory).describe(
      "The users file. Reloaded when it changes; if it is broken, the old users stay",
    ),
  });
  const htpasswd = store("htpasswd", {
    path: usersPath(directory).describe(
      "A file of `htpasswd -B`, with bcrypt of a cost from 4 to 16. Reloaded like a users file",
    ),
  });
  const elsewhere = [
    ldapStore(directory),
    postgresStore(directory),
    sqliteStore(directory),
    httpStore(directory),
  ] as const;
  return z
    .array(z.discriminatedUnion("kind", [file, htpasswd, ...elsewhere]))
    .default([])
    .describe("User stores, in the order in which they are tried");
}

/** A file of users and their hashes, which its store follows. */
function usersPath(directory: string) {
  return filePath(directory, {
    ...{ readAgainBy: "reader", secret: true, largest: LARGEST_USERS_FILE },
  });
}
