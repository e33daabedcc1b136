import { isIP } from "node:net";
import type { Configuration } from "../config/schema/configuration-schema.ts";
import { storeKindOf } from "../credentials/stores/store-kinds.ts";

interface ClearTextWarning {
  readonly message: string;
  readonly hint: string;
}

/** Returns warnings about connections that send passwords in clear text to other machines. */
export function clearTextWarnings({
  users,
  shared,
}: Pick<Configuration, "users" | "shared">): ClearTextWarning[] {
  const found = users.flatMap((store): ClearTextWarning[] => {
    const clear = storeKindOf(store).clearText(store);
    if (clear === undefined || isHere(clear.url)) return [];
    const message = `users: the connection to the ${store.kind} store is clear text: eavesdroppers can read passwords or hashes`;
    return [{ message, hint: clear.hint }];
  });
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
