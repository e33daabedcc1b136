import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import { withoutRestart } from "./effective/changes.ts";
import { type Effective, effectiveConfiguration } from "./effective/effective.ts";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import { namedFiles, accessProblem } from "./named-files.ts";
import type { Configuration } from "./schema/configuration-schema.ts";
import { type SeenFiles, SnapshotFiles } from "./snapshot-files.ts";

/**
 * One reading of the configuration and of every file that it names. All code that uses a file gets its content from
 * here, and so sees the same version even if the file changes meanwhile.
 */
export interface Snapshot {
  /** The configuration as read. */
  readonly written: Configuration;
  /**
   * The configuration that can be put in force: keys that need a restart keep their current values. At start, equal to
   * `written`.
   */
  readonly configuration: Configuration;
  /** The contents of the files that `written` or `configuration` names. */
  readonly files: SnapshotFiles;
  /** Files that `written` names and that cannot be read, each with its key. */
  readonly missing: readonly ConfigProblem[];
  /** Every file whose change requires another snapshot, with its fingerprint; undefined if it was not read. */
  readonly followed: ReadonlyMap<string, string | undefined>;
  /** The configuration with defaults and without secrets; computed on demand. */
  readonly effective: () => Effective;
}

/** The configuration in force while a snapshot is taken. */
export interface InForce {
  readonly configuration: Configuration;
  readonly seen: SeenFiles;
}

/**
 * Takes a snapshot. Does not check the contents of the files; the code that uses them does.
 *
 * @throws ConfigError with all problems of the configuration itself.
 */
export async function takeSnapshot(
  sources: ConfigurationSources,
  inForce?: InForce,
): Promise<Snapshot> {
  const files = new SnapshotFiles(inForce?.seen);
  const loaded = loadConfiguration(sources, (path) => files.readNow(path));
  const { configuration: written } = loaded;
  const configuration =
    inForce === undefined ? written : withoutRestart(written, inForce.configuration);
  const wanted = namedFiles(written);
  const named = [...wanted, ...namedFiles(configuration)];
  await files.read(named);
  const missing = wanted.flatMap((each) => {
    const message = files.has(each) ? undefined : accessProblem(each);
    if (message === undefined) return [];
    const problem = loaded.problem({ path: each.key, message });
    files.setError(each, new ConfigError([problem]));
    return [problem];
  });
  const followed = named.filter(({ use }) => use.readAgainBy === "reload");
  return {
    written,
    configuration,
    files,
    missing,
    followed: new Map([
      ...loaded.files,
      ...followed.map(({ path }) => [path, files.fingerprint(path)] as const),
    ]),
    effective: () => effectiveConfiguration(loaded),
  };
}
