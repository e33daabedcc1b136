import type { Configuration } from "../../config/configuration.ts";
import { fileUserStore } from "./file-user-store.ts";
import { readHtpasswd } from "./htpasswd.ts";
import { authoritiesIn } from "./remote/store-access.ts";
import { http } from "./http/http-store.ts";
import { ldap } from "./ldap/ldap-store.ts";
import { postgres } from "./sql/postgres-store.ts";
import { sqlite } from "./sql/sqlite-store.ts";
import type { FileReader, OpenUserStore, StoreContext, StoreKind } from "./user-store.ts";
import { readUsers } from "./users-reading.ts";

type Settings = { [Each in Configuration["users"][number] as Each["kind"]]: Each };

type StoreKindName = keyof Settings;

/** An entry of `users`. */
export type StoreSettings<Kind extends StoreKindName = StoreKindName> = {
  [Each in Kind]: { readonly kind: Each } & Settings[Each];
}[Kind];

/** The values of `kind` in an entry of `users`. The settings of each kind are in `config/sections/users-section.ts`. */
const KINDS: { readonly [Kind in StoreKindName]: StoreKind<Settings[Kind]> } = {
  file: fileUserStore(readUsers),
  htpasswd: fileUserStore(({ bytes, path }) => readHtpasswd(bytes, path)),
  ldap,
  postgres,
  sqlite,
  http,
};

/** Returns the kind of a store. */
export function storeKindOf<Kind extends StoreKindName>({
  kind,
}: Pick<StoreSettings<Kind>, "kind">): StoreKind<Settings[Kind]> {
  return KINDS[kind];
}

/**
 * Checks whether a store could be opened, for `check` and before a reload.
 *
 * @returns the number of users, or undefined if they cannot be counted. Rejects with a `ConfigError` if the store cannot
 * be used.
 */
export async function inspectStore(
  settings: StoreSettings,
  contentOf: FileReader,
): Promise<number | undefined> {
  if ("caFile" in settings) authoritiesIn(settings.caFile, contentOf);
  return storeKindOf(settings).inspect?.(settings, contentOf);
}

/** Rejects with a `ConfigError` if the store cannot be used. */
export function openUserStore<Kind extends StoreKindName>(
  settings: StoreSettings<Kind>,
  context: StoreContext,
): Promise<OpenUserStore> {
  return KINDS[settings.kind].open(settings, context);
}
