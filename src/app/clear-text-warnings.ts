import { isIP } from "node:net";
import type { Configuration } from "../config/schema/configuration-schema.ts";

interface ClearTextWarning {
  readonly message: string;
  readonly hint: string;
}

/** Returns warnings about connections that send passwords in clear text to other machines. */
export function clearTextWarnings({
  users,
  shared,
}: Pick<Configuration, "users" | "shared">): ClearTextWarning[] {
  const stores = users.flatMap((store): { readonly kind: string; readonly url: string }[] => {
    const { kind } = store;
    if (kind === "ldap" && store.startTls === false) return [{ kind, url: store.url }];
    if (kind === "postgres" && !store.tls) return [{ kind, url: store.url }];
    if (kind === "http" && store.url.startsWith("http:")) return [{ kind, url: store.url }];
    return [];
  });
  const found = stores
    .filter(({ url }) => !isHere(url))
    .map(({ kind }) => ({
      message: `users: the connection to the ${kind} store is clear text: eavesdroppers can read passwords or hashes`,
      hint: kind === "ldap" ? "use ldaps://, or startTls: true" : "use TLS",
    }));
  if (shared === undefined || !shared.url.startsWith("redis:")) return found;
  if ([shared.url, ...shared.nodes.map((node) => `redis://${node}`)].every(isHere)) return found;
  const message = "shared: the connection is clear text: eavesdroppers can read its password";
  const hint = "use rediss://";
  return [...found, { message, hint }];
}

function isHere(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}
