import type { Configuration } from "../../config/configuration.ts";
import type { SnapshotFiles } from "../../config/snapshot.ts";
import { ConfigError } from "../../core/config-problem.ts";
import { keysIn } from "../../tokens/keys/key-directory.ts";
import { createKeyRing, type KeyRing } from "../../tokens/keys/key-ring.ts";
import { loadSigningKeys } from "../../tokens/keys/watched-keys.ts";
import { NOOP_LOG } from "../explanation/dry-run-gate.ts";
import { assertionKeysOf, ownKeysOf } from "./all-keys.ts";

/** Returns a function for each use of the key directories. It throws `ConfigError` if they cannot be used. */
export function keyUses(configuration: Configuration, files: SnapshotFiles): (() => unknown)[] {
  const { keys, assertion } = configuration.tokens;
  const log = NOOP_LOG;
  const ofTokens = () => loadSigningKeys({ ...ownKeysOf(configuration, files), log });
  const ofAssertions = () => loadSigningKeys({ ...assertionKeysOf(configuration, files), log });
  return [
    ...(keys === undefined ? [] : [ofTokens]),
    ...(assertion?.keys === undefined ? [] : [ofAssertions]),
    () => refuseSharedKeys(configuration, files),
  ];
}

/** Returns the files with private keys that other users can read. @throws ConfigError with all problems. */
export function exposedOwnKeys({ tokens }: Configuration, files: SnapshotFiles): string[] {
  const { keys, algorithm, assertion } = tokens;
  const found = [
    ...(keys === undefined ? [] : keysIn(files.directory(keys), algorithm)),
    ...(assertion?.keys === undefined
      ? []
      : keysIn(files.directory(assertion.keys), assertion.algorithm ?? algorithm)),
  ];
  return found.filter(({ exposed }) => exposed).map(({ file }) => file);
}

/** Refuses keys in both directories: only type and audience would distinguish an assertion from a token. */
async function refuseSharedKeys({ tokens }: Configuration, files: SnapshotFiles): Promise<void> {
  const { keys, assertion } = tokens;
  if (keys === undefined || assertion?.keys === undefined) return;
  const [ours, theirs] = [await ringIn(files, keys), await ringIn(files, assertion.keys)];
  const kids = new Set(ours.map(({ kid }) => kid));
  const problems = theirs
    .filter(({ kid }) => kids.has(kid))
    .map(({ file = "" }) => ({
      file,
      message: "this key is in tokens.keys, too: assertions need their own keys",
    }));
  if (problems.length > 0) throw new ConfigError(problems);
}

async function ringIn(files: SnapshotFiles, directory: string): Promise<KeyRing> {
  try {
    return await createKeyRing(keysIn(files.directory(directory), "ES256"), "ES256");
  } catch (error) {
    if (error instanceof ConfigError) return []; // Reported when the keys are loaded.
    throw error;
  }
}
