import { ConfigError } from "../core/config-problem.ts";
import {
  type ContentIdentity,
  type FileContent,
  readFailure,
  readRegularFile,
  readRegularFileSync,
} from "../lib/files/regular-file.ts";
import { type KeyFiles, readKeyFiles } from "../tokens/keys/key-directory.ts";
import type { NamedFile } from "./named-files.ts";

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

  /**
   * Returns the content of the files of a directory.
   *
   * @throws ConfigError if it could not be read.
   */
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

  /**
   * Reads a file synchronously, unless it has been read already.
   *
   * @throws the errors of `readRegularFileSync`.
   */
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
