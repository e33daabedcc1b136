import { z } from "zod";
import { LARGEST_USERS_FILE } from "../../../credentials/stores/user-store.ts";
import { postgresStore, sqliteStore } from "./database-store-section.ts";
import { filePath } from "../fields.ts";
import { httpStore } from "./http-store-section.ts";
import { ldapStore } from "./ldap-store-section.ts";
import { store } from "./store-fields.ts";

/** The section `users`: the settings of each kind of user store. */
export function usersSection() {
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
