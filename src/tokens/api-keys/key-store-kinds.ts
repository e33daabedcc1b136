import type { Configuration } from "../../config/configuration.ts";
import type { ClearText, FileReader, StoreHint } from "../../credentials/stores/user-store.ts";
import type { ContentIdentity } from "../../lib/files/regular-file.ts";
import { type ApiKeyRow, readApiKeys } from "./api-key-file.ts";
import { postgres, type PostgresTable } from "./postgres-keys.ts";

/** A kind of store of API keys: reads the keys from the files of a snapshot, or opens a table that is read again and again. */
export interface KeyStoreKind<Settings> {
  /** @throws ConfigError if the keys cannot be used. */
  readonly read?: (settings: Settings, contentOf: FileReader) => readonly ApiKeyRow[];
  /** @param authorities the PEM of those that may issue the server's certificate; undefined for Node's own. */
  readonly open?: (settings: Settings, authorities: string | undefined) => PostgresTable;
  /** Names the table, without credentials. */
  readonly nameOf?: (settings: Settings) => string;
  /** Returns the connection on which hashes pass in clear text; undefined if there is none. */
  readonly clearText?: (settings: Settings) => ClearText | undefined;
  /** What an operator can do about a failure. The first hint that matches applies. */
  readonly hints?: readonly StoreHint[];
}

/** What was read from the files of a snapshot. It is read once for equal contents. */
const read = new WeakMap<ContentIdentity, readonly ApiKeyRow[]>();

const file: KeyStoreKind<KeyStoreSettings<"file">> = {
  read({ path }, contentOf) {
    const { identity, bytes } = contentOf(path);
    const rows = read.get(identity) ?? readApiKeys(bytes, path);
    read.set(identity, rows);
    return rows;
  },
};

type Settings = { [Each in NonNullable<Configuration["apiKeys"]>[number] as Each["kind"]]: Each };

export type KeyStoreName = keyof Settings;

/** An entry of `apiKeys`. */
export type KeyStoreSettings<Kind extends KeyStoreName = KeyStoreName> = {
  [Each in Kind]: { readonly kind: Each } & Settings[Each];
}[Kind];

/** The values of `kind` in an entry of `apiKeys`. The settings of each kind are in `config/sections/api-keys-section.ts`. */
const KINDS: { readonly [Kind in KeyStoreName]: KeyStoreKind<Settings[Kind]> } = { file, postgres };

export function keyStoreKindOf<Kind extends KeyStoreName>({
  kind,
}: Pick<KeyStoreSettings<Kind>, "kind">): KeyStoreKind<Settings[Kind]> {
  return KINDS[kind];
}
