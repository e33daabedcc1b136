import { dirname, resolve } from "node:path";
import { type FileContent, readRegularFile } from "./regular-file.ts";
import { watchDirectory } from "./watched-directory.ts";

/** How long the content is used without reading the file again, in milliseconds. */
const FRESH_MS = 10_000;
/** In bytes. */
const LARGEST = 262_144;

/**
 * A small file that may change, such as a token that Kubernetes rotates or the certificate of an authority. It is
 * read when its content is requested and the last read is more than ten seconds ago. If it cannot be read, the last
 * content stays.
 */
export class RereadFile {
  readonly #path: string;
  #text: string | undefined;
  #readAt = -Infinity;
  #reading: Promise<string> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the content as text. Rejects with the error of `readRegularFile` if the file could never be read. */
  text(): string | Promise<string> {
    if (this.#text !== undefined && performance.now() - this.#readAt < FRESH_MS) return this.#text;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<string> {
    try {
      const { text } = await readRegularFile(this.#path, LARGEST);
      this.#text = text;
    } catch (error) {
      if (this.#text === undefined) throw error;
    }
    this.#readAt = performance.now();
    return this.#text;
  }
}

/** Neither function may throw. */
interface WatchOptions {
  /** The maximum size in bytes, by default that of `readRegularFile`. A larger file is unreadable. */
  readonly maxBytes?: number;
  /** Called with each new content, and when the file becomes readable again. */
  onChange(content: FileContent): void;
  /** Called when the file becomes unreadable. */
  onUnreadable(error: unknown): void;
}

/** The watch on a file that the caller has already read. */
export interface FollowedFile {
  /**
   * Accepts content that was read elsewhere as if this watch had read it. Ignores content older than the last check.
   */
  accept(content: FileContent): void;
  close(): void;
}

/**
 * Reports each change of a file's content. Watches the directory instead of the file: editors and Kubernetes replace
 * files by renaming, and a watch on the file would stay on the old one. Compares the contents at each check; the first
 * check follows within 50 ms. Does not keep the process alive.
 *
 * @param seen the fingerprint of the last content; undefined if the file could not be read.
 */
export function followFile(
  path: string,
  seen: string | undefined,
  { onChange: changed, onUnreadable: unreadable, maxBytes: largest }: WatchOptions,
): FollowedFile {
  let last = seen;
  let readable = seen !== undefined;
  let readAt = -Infinity;
  let closed = false;

  function take(content: FileContent): void {
    if (closed || content.readAt < readAt) return;
    ({ readAt } = content);
    const same = readable && content.fingerprint === last;
    readable = true;
    last = content.fingerprint;
    if (!same) changed(content);
  }

  async function check(): Promise<void> {
    const began = performance.now();
    let content: FileContent;
    try {
      content = await readRegularFile(path, largest);
    } catch (error) {
      if (readable && !closed) unreadable(error);
      readable = false;
      readAt = began;
      return;
    }
    take(content);
  }

  const directory = watchDirectory(dirname(resolve(path)), check, () => [path]);
  return {
    accept: take,
    close() {
      closed = true;
      directory.close();
    },
  };
}
