import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { SnapshotFiles } from "../../config/snapshot-files.ts";
import type { OwnKeySettings } from "../../tokens/keys/watched-keys.ts";
import { assertsWithOwnKeys } from "../gate/from-configuration.ts";

/**
 * Returns the settings of the keys that sign Sallyport's tokens.
 *
 * @throws ConfigError if their directory cannot be read.
 */
export function ownKeysOf({ tokens, users }: Configuration, files: SnapshotFiles): OwnKeySettings {
  const { algorithm, keys } = tokens;
  return {
    algorithm,
    files: keys === undefined ? undefined : files.directory(keys),
    issues: users.length > 0,
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
