import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "../../config/configuration.ts";
import type { Configured, SnapshotFiles } from "../../config/snapshot.ts";
import type { Change } from "../../core/change.ts";
import { ConfigError } from "../../core/config-problem.ts";
import type { StatusKeyStore } from "../../core/status.ts";
import { type FileReader, storeNames } from "../../credentials/stores/user-store.ts";
import { readAuthorities } from "../../server/tls/certificate.ts";
import { apiKeyId, type ApiKeyRow } from "../../tokens/api-keys/api-key-file.ts";
import type { ApiKeySet } from "../../tokens/api-keys/api-keys.ts";
import { followKeys } from "../../tokens/api-keys/followed-keys.ts";
import { keyStoreKindOf, type KeyStoreSettings } from "../../tokens/api-keys/key-store-kinds.ts";
import { createAll } from "../from-files.ts";
import type { GateOptions } from "./gate-options.ts";

/** A store of API keys. */
interface KeyStore {
  /** Its name in the log and in metrics. */
  readonly name: string;
  /** Where its keys are, for problems. */
  readonly place: string;
  /** What it reads, whatever the credentials. */
  readonly tableName: string | undefined;
  /** What it was opened from. */
  readonly inputs: unknown;
  /** Undefined if it was never read. */
  rows: readonly ApiKeyRow[] | undefined;
  /** Undefined for a file, which is read with the configuration. */
  readonly followed?: ReturnType<typeof followKeys>;
}

/** The stores of API keys of the configuration in force. */
export class KeyStores {
  readonly #options: Pick<GateOptions, "log" | "clock">;
  #stores: readonly KeyStore[] = [];
  #apply: ((keys: ApiKeySet) => Promise<void>) | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: Pick<GateOptions, "log" | "clock">) {
    this.#options = options;
  }

  /** Opens the stores of the first configuration, and returns their keys. @throws ConfigError as `prepare`. */
  async open(first: Configured): Promise<ApiKeySet> {
    const { keys, commit } = await this.prepare(first);
    await commit();
    return keys;
  }

  /** Follows tables from now on, and calls a function with the keys of all stores when those of a table have changed. */
  begin(apply: (keys: ApiKeySet) => Promise<void>): void {
    this.#apply = apply;
    this.#follow();
  }

  /** Does work while no change of a table is put in force, and after earlier work. */
  exclusively<Result>(work: () => Promise<Result>): Promise<Result> {
    const running = this.#turn.then(work);
    this.#turn = running.catch(() => undefined);
    return running;
  }

  /**
   * Prepares the stores of a configuration. Asks each new table once; one that does not answer is asked again later.
   *
   * @throws ConfigError if a file cannot be used.
   */
  async prepare({ configuration, files }: Configured): Promise<Change & { keys: ApiKeySet }> {
    const before = this.#stores;
    const names = storeNames(configuration.apiKeys);
    const next: KeyStore[] = [];
    const rollback = (): void => void closeAll(next, before);
    try {
      for (const [at, settings] of configuration.apiKeys.entries()) {
        next.push(this.#opened(settings, names[at] ?? settings.kind, files, next));
      }
      for (const each of next) if (!before.includes(each)) await each.followed?.read();
      return {
        keys: together(next),
        commit: async () => {
          this.#stores = next;
          this.#follow();
          await closeAll(before, next);
        },
        rollback,
      };
    } catch (error) {
      rollback();
      throw error;
    }
  }

  /** The state of each store. */
  states(): StatusKeyStore[] {
    const now = this.#options.clock.now();
    return this.#stores.map(({ name, rows, followed }) => {
      const nextExpiry = (rows ?? [])
        .filter(({ disabled, expires = 0 }) => !disabled && expires > now)
        .reduce((first, { expires = first }) => Math.min(first, expires), Infinity);
      return { name, keys: rows?.length, nextExpiry, failingSince: followed?.failingSince };
    });
  }

  close(): Promise<void> {
    return closeAll(this.#stores, []);
  }

  #follow(): void {
    if (this.#apply === undefined) return;
    for (const { followed } of this.#stores) followed?.follow();
  }

  /** @param all the stores of its configuration. */
  #opened(
    settings: KeyStoreSettings,
    name: string,
    files: SnapshotFiles,
    all: readonly KeyStore[],
  ): KeyStore {
    const { read, open, nameOf } = keyStoreKindOf(settings);
    if (open === undefined) {
      const rows = read?.(settings, keyFilesIn(files));
      const place = settings.kind === "file" ? settings.path : name;
      return { name, place, tableName: place, inputs: settings, rows };
    }
    const { caFile } = { caFile: undefined, ...settings };
    const authorities = caFile === undefined ? undefined : readAuthorities(caFile, files.text);
    const inputs = [name, settings, authorities];
    const kept = this.#stores.find((each) => isDeepStrictEqual(each.inputs, inputs));
    if (kept !== undefined) return kept;
    const table = open(settings, authorities);
    const accept = async (rows: readonly ApiKeyRow[]): Promise<void> => {
      const keys = (stores: readonly KeyStore[]): ApiKeySet =>
        together(stores.map((each) => (each === store ? { ...each, rows } : each)));
      const put = async (stores: readonly KeyStore[], apply = this.#apply): Promise<void> => {
        await apply?.(keys(stores));
        store.rows = rows;
      };
      if (this.#stores.includes(store)) await this.exclusively(() => put(this.#stores));
      else await put(all, async () => undefined);
    };
    const followed = followKeys({ ...this.#options, store: name, table, accept });
    // Until it is read, the keys of the same table stay: a new password may be wrong.
    const tableName = nameOf?.(settings);
    const { rows } = this.#stores.find((each) => each.tableName === tableName) ?? {};
    const store: KeyStore = { name, place: name, tableName, inputs, rows, followed };
    return store;
  }
}

async function closeAll(stores: readonly KeyStore[], except: readonly KeyStore[]): Promise<void> {
  const gone = stores.filter((each) => !except.includes(each));
  await Promise.all(gone.map(async ({ followed }) => followed?.close()));
}

/** Reads the keys in files. @throws ConfigError with the problem of a file, or if two keys have one name. */
export function keysInFiles({ apiKeys }: Configuration, files: SnapshotFiles): ApiKeySet {
  const stores = createAll(
    apiKeys.map((settings) => (): Pick<KeyStore, "place" | "rows"> => {
      const rows = keyStoreKindOf(settings).read?.(settings, keyFilesIn(files));
      return { place: "path" in settings ? settings.path : settings.kind, rows };
    }),
  );
  return together(stores);
}

function keyFilesIn(files: SnapshotFiles): FileReader {
  return (path) => files.content(path, (why) => `the file of API keys cannot be read: ${why}`);
}

/** @throws ConfigError if two keys have one name, or ids that are the same by chance. */
function together(stores: readonly Pick<KeyStore, "place" | "rows">[]): ApiKeySet {
  const names = new Map<string, string>();
  for (const { place, rows = [] } of stores) {
    for (const { name } of rows) {
      const id = apiKeyId(name);
      const earlier = names.get(id);
      names.set(id, name);
      if (earlier === undefined) continue;
      const message =
        earlier === name
          ? `${name} is the name of an earlier API key`
          : `${name} has the same id as ${earlier}`;
      throw new ConfigError([{ file: place, message }]);
    }
  }
  const complete = stores.every(({ rows }) => rows !== undefined);
  return { rows: stores.flatMap(({ rows = [] }) => rows), complete };
}
