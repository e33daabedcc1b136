import type { Configuration } from "../../config/configuration.ts";
import type { Snapshot, SnapshotFiles } from "../../config/snapshot.ts";
import type { Change } from "../../core/change.ts";
import type { Log } from "../../core/log.ts";
import type { Clock } from "../../lib/clock.ts";
import {
  openOwnKeys,
  type OwnKeySettings,
  type WatchedKeys,
} from "../../tokens/keys/watched-keys.ts";
import { assertsWithOwnKeys } from "../gate/from-configuration.ts";
import { prepareAll } from "../reload/reloader.ts";
import type { ReloadStates } from "../reload/reload-states.ts";

/** All of Sallyport's own keys. */
export interface AllKeys {
  /** The keys that sign and verify Sallyport's tokens. */
  readonly keys: WatchedKeys;
  /** The keys that sign only assertions; none if the token keys sign assertions. */
  readonly assertionKeys: WatchedKeys;
}

/** Opens all keys, and watches their files. @throws ConfigError if the files of the snapshot cannot be used. */
export async function openAllKeys(
  { configuration, files }: Snapshot,
  {
    reloads,
    ...outside
  }: { readonly reloads: ReloadStates; readonly clock: Clock; readonly log: Log },
): Promise<AllKeys> {
  const { reloaded } = reloads.add();
  const keys = await openOwnKeys({ ...ownKeysOf(configuration, files), reloaded, ...outside });
  try {
    const settings = { ...assertionKeysOf(configuration, files), ...outside };
    const assertionKeys = await openOwnKeys({ ...settings, reloaded: reloads.add().reloaded });
    return { keys, assertionKeys };
  } catch (error) {
    keys.close();
    throw error;
  }
}

/** Prepares the keys of another snapshot. @throws ConfigError if they cannot be used. */
export function prepareKeys(
  { keys, assertionKeys }: AllKeys,
  { configuration, files }: Snapshot,
): Promise<Change> {
  return prepareAll([
    () => keys.prepare(ownKeysOf(configuration, files)),
    () => assertionKeys.prepare(assertionKeysOf(configuration, files)),
  ]);
}

/**
 * Returns the settings of the keys that sign Sallyport's tokens.
 *
 * @throws ConfigError if their directory cannot be read.
 */
export function ownKeysOf(
  { tokens, users, browser }: Configuration,
  files: SnapshotFiles,
): OwnKeySettings {
  const { algorithm, keys } = tokens;
  return {
    algorithm,
    files: keys === undefined ? undefined : files.directory(keys),
    issues: users.length > 0 || (browser?.providers ?? []).length > 0,
  };
}

/**
 * Returns the settings of the keys that sign only assertions.
 *
 * @throws ConfigError if their directory cannot be read.
 */
export function assertionKeysOf({ tokens }: Configuration, files: SnapshotFiles): OwnKeySettings {
  const { assertion } = tokens;
  const keys = assertion?.keys;
  return {
    purpose: "assertions",
    algorithm: assertion?.algorithm ?? tokens.algorithm,
    files: keys === undefined ? undefined : files.directory(keys),
    unused: !assertsWithOwnKeys(tokens),
    lifetime: assertion?.lifetime,
    issues: assertion !== undefined,
  };
}
