import { accessSync, constants, statSync } from "node:fs";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import { type Effective, effectiveConfiguration } from "./effective.ts";
import { type Configuration, configurationSchema } from "./configuration.ts";
import { type ConfigurationSources, loadConfiguration } from "./load.ts";
import { withoutRestart } from "./changes.ts";
import {
  type ContentIdentity,
  type FileContent,
  readFailure,
  readRegularFile,
  readRegularFileSync,
} from "../lib/files/regular-file.ts";
import { type KeyFiles, readKeyFiles } from "../tokens/keys/key-directory.ts";
import type { YamlPath } from "../lib/files/positioned-yaml.ts";
import { pathName } from "./written.ts";
import { layersOf, namesIn, type Part, partsAt } from "./schema-parts.ts";
import { FILE_USES, type FileUse } from "./fields.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";
import { describePermissions } from "../lib/files/private-file.ts";
import { shellWord } from "../lib/text/printable.ts";

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
  /** Returns the place of the key that names a file; undefined if none does. */
  readonly namedAt: (path: string) => Omit<ConfigProblem, "hint" | "related"> | undefined;
  /** Every file whose change requires another snapshot, with its fingerprint; undefined if it was not read. */
  readonly followed: ReadonlyMap<string, string | undefined>;
  /** The configuration with defaults and without secrets; computed on demand. */
  readonly effective: () => Effective;
}

/** A configuration, with the contents of its files. */
export type Configured = Pick<Snapshot, "configuration" | "files">;

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
    const hint = / does not exist: /.test(message) ? remedyFor(each) : {};
    const problem = loaded.problem({ path: each.key, message, ...hint });
    files.setError(each, new ConfigError([problem]));
    return [problem];
  });
  const followed = named.filter(({ use }) => use.readAgainBy === "reload");
  return {
    written,
    configuration,
    files,
    missing,
    namedAt: (path) => {
      const key = wanted.find((each) => each.path === path)?.key;
      return key && { ...loaded.problem({ path: key, message: "" }), message: pathName(key) };
    },
    followed: new Map([
      ...loaded.files,
      ...followed.map(({ path }) => [path, files.fingerprint(path)] as const),
    ]),
    effective: () => effectiveConfiguration(loaded),
  };
}

/** The content that was read, or the error. */
type Reading<Content> = { readonly content: Content } | { readonly error: unknown };

/** The identities of the contents last read, by path, without their bytes. */
export type SeenFiles = ReadonlyMap<string, ContentIdentity>;

/**
 * The files and directories of one snapshot, by absolute path. Each is read only once, even if several keys name it.
 */
export class SnapshotFiles {
  readonly #seen: SeenFiles;
  readonly #files = new Map<string, Reading<FileContent>>();
  readonly #directories = new Map<string, Reading<KeyFiles>>();

  /** @param seen the identities of the previous snapshot; unchanged contents keep theirs. */
  constructor(seen: SeenFiles = new Map()) {
    this.#seen = seen;
  }

  /**
   * Returns the content of a file.
   *
   * @param unread returns the message for a file that could not be read; the reason is a code, or a few words.
   * @throws ConfigError if it could not be read.
   */
  content(path: string, unread = (why: string) => `cannot be read (${why})`): FileContent {
    try {
      return contentOf(this.#files.get(path), path);
    } catch (error) {
      if (error instanceof ConfigError) throw error;
      throw new ConfigError([{ file: path, message: unread(readFailure(error)) }]);
    }
  }

  /** Returns the content of a file as text. @throws ConfigError if it could not be read. */
  readonly text = (path: string): string => this.content(path).text;

  /** Returns the content of the files of a directory. @throws ConfigError if it could not be read. */
  directory(path: string): KeyFiles {
    return contentOf(this.#directories.get(path), path);
  }

  /** Returns the fingerprint of the content; undefined if the file was not read. */
  fingerprint(path: string): string | undefined {
    const reading = this.#files.get(path);
    return reading !== undefined && "content" in reading ? reading.content.fingerprint : undefined;
  }

  /** Returns the identities with which the next snapshot compares its contents. */
  seen(): SeenFiles {
    return new Map(
      Array.from(this.#files).flatMap(([path, reading]) =>
        "content" in reading ? [[path, reading.content.identity] as const] : [],
      ),
    );
  }

  /** Reads a file synchronously, unless it has been read already. @throws the errors of `readRegularFileSync`. */
  readNow(path: string): FileContent {
    let reading = this.#files.get(path);
    if (reading === undefined) {
      try {
        reading = { content: readRegularFileSync(path) };
      } catch (error) {
        reading = { error };
      }
      this.#files.set(path, reading);
    }
    return contentOf(reading, path);
  }

  /** Reads the named files that have not been read yet. */
  async read(named: readonly NamedFile[]): Promise<void> {
    const once = new Map(named.map((each) => [`${each.use.kind} ${each.path}`, each]));
    await Promise.all([...once.values()].map((each) => this.#readOne(each)));
  }

  /** Reports whether a named file was read. */
  has({ path, use }: NamedFile): boolean {
    const reading = (use.kind === "file" ? this.#files : this.#directories).get(path);
    return reading !== undefined && "content" in reading;
  }

  /** Replaces the system's error for a named file with a more helpful one. */
  setError({ path, use }: NamedFile, error: ConfigError): void {
    (use.kind === "file" ? this.#files : this.#directories).set(path, { error });
  }

  async #readOne({ path, use }: NamedFile): Promise<void> {
    if (use.readAgainBy === "request") return;
    if (use.kind === "directory") {
      this.#directories.set(path, await reading(readKeyFiles(path)));
    } else if (!this.#files.has(path)) {
      const content = readRegularFile(path, use.maxBytes, this.#seen.get(path));
      this.#files.set(path, await reading(content));
    }
  }
}

async function reading<Content>(content: Promise<Content>): Promise<Reading<Content>> {
  try {
    return { content: await content };
  } catch (error) {
    return { error };
  }
}

function contentOf<Content>(found: Reading<Content> | undefined, path: string): Content {
  if (found === undefined) throw new Error(`${path} is not of this snapshot`);
  if ("error" in found) throw found.error;
  return found.content;
}

/** A file or directory that a key of the configuration names. */
export interface NamedFile {
  readonly key: YamlPath;
  /** Absolute. */
  readonly path: string;
  readonly use: FileUse;
}

/** Returns all files that a configuration names in `filePath` fields, in the order of the schema. */
export function namedFiles(configuration: Configuration): NamedFile[] {
  return namedBelow([configurationSchema()], configuration, []);
}

/** Walks parts of the schema in parallel with their value. */
function namedBelow(parts: readonly Part[], value: unknown, key: YamlPath): NamedFile[] {
  if (value === undefined) return [];
  const layers = layersOf(parts, value);
  const below = (name: string | number, inner: unknown): NamedFile[] =>
    namedBelow(partsAt(layers, name), inner, [...key, name]);
  if (Array.isArray(value)) return value.flatMap((entry, index) => below(index, entry));
  if (isJsonObject(value)) {
    const names = new Set([...namesIn(layers).flat(), ...Object.keys(value)]);
    return [...names].flatMap((name) => below(name, value[name]));
  }
  const use = layers.map((each) => FILE_USES.get(each)).find((each) => each !== undefined);
  return use === undefined || typeof value !== "string" ? [] : [{ key, path: value, use }];
}

/** Returns what makes a key, a certificate or a directory of keys that does not exist. */
function remedyFor({ key, path, use }: NamedFile): { readonly hint?: string } {
  if (use.kind === "directory") {
    return { hint: `make one with sallyport keys generate --directory ${shellWord(path)}` };
  }
  const isPair =
    key.join(".").startsWith("server.tls.") && /^(?:cert|key)File$/.test(`${key.at(-1)}`);
  return isPair
    ? {
        hint: "make one with sallyport init, or openssl req -x509; in a pod, is the Secret mounted?",
      }
    : {};
}

/** Returns why a named file cannot be read, as a continuation of its key; undefined if it can be read. */
function accessProblem({ path, use }: Pick<NamedFile, "path" | "use">): string | undefined {
  const { kind } = use;
  const directory = kind === "directory";
  try {
    const stats = statSync(path, { throwIfNoEntry: false });
    if (stats === undefined) return `names a ${kind} that does not exist: ${path}`;
    if (directory && !stats.isDirectory()) return `does not name a directory: ${path}`;
    if (!directory && !stats.isFile()) return `does not name a regular file: ${path}`;
    accessSync(path, directory ? constants.R_OK | constants.X_OK : constants.R_OK);
    return undefined;
  } catch {
    return `names a ${kind} that cannot be read: ${path} (${describePermissions(path)})`;
  }
}
