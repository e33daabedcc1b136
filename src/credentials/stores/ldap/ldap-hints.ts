import type { StoreHint } from "../user-store.ts";

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
