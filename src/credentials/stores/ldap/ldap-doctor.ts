import { remoteFailure } from "../../../lib/text/remote-error.ts";
import type { StoreDoubt, StoreHint } from "../user-store.ts";
import type { LdapConnection, LdapSettings } from "./ldap-connection.ts";
import { nameAttributes } from "./ldap-filter.ts";

/** What an operator can do about a directory that cannot be used. The numbers are result codes (RFC 4511 §4.1.9). */
export const LDAP_HINTS: readonly StoreHint[] = [
  { reason: /credentials of `bind`/, hint: "check `bind.dn` and `bind.password`" },
  {
    reason: /^there is no /,
    hint: "check `search.base` and `groups.base`, and whether `bind` may read them",
  },
  {
    reason: /\(50\)$/,
    hint: "give the entry of `bind` permission to read and search there",
  },
  {
    reason: /\((?:8|13)\)$/,
    hint: "the directory requires TLS: use ldaps:// or `startTls: true`",
  },
  { reason: /\(1\)$/, hint: "it may require a bind before a search: set `bind`" },
];

const HIDDEN = "or the directory hides it from `bind`";

/**
 * Checks that the attributes in the settings exist. A directory answers a search for an unknown attribute as it answers
 * one for an unknown name, so this looks for any entry that has the attribute. Never rejects.
 *
 * @param connection bound as the account that searches.
 */
export async function doubtsAbout(
  connection: Pick<LdapConnection, "has">,
  { search, groups }: Pick<LdapSettings, "search" | "groups">,
): Promise<readonly StoreDoubt[]> {
  const doubts: StoreDoubt[] = [];
  const look = async (where: "search" | "groups", base: string, attributes: readonly string[]) => {
    for (const attribute of attributes) {
      if (await connection.has(base, `(${attribute}=*)`)) continue;
      const doubt = `no entry below ${where}.base has the attribute ${attribute}`;
      doubts.push({
        doubt,
        hint: `there are no entries yet, the attribute has another name, ${HIDDEN}`,
      });
    }
  };
  try {
    await look("search", search.base, nameAttributes(search.filter));
    if (groups !== undefined) {
      const { base, attribute, filter } = groups;
      await look("groups", base, [...new Set([attribute, ...comparedAttributes(filter)])]);
    }
  } catch (error) {
    doubts.push({ doubt: remoteFailure(error), hint: "look at `search.base` and `groups.base`" });
  }
  return doubts;
}

/**
 * Returns the attributes that a filter compares with the user. A matching rule, as in `member:1.2.3:=`, is not part of
 * the name.
 */
function comparedAttributes(filter: string): string[] {
  return [...filter.matchAll(/\(([A-Za-z][\w.;-]*)(?::[\w.]+:)?=\{(?:username|dn)\}/g)].map(
    ([, attribute = ""]) => attribute,
  );
}
