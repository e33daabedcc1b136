import { z } from "zod";
import { text } from "../fields.ts";
import { asking, caFile, store } from "./store-fields.ts";

/** An entry of `users` of the kind `ldap`. */
export function ldapStore() {
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
