import { dirname, resolve } from "node:path";
import { type FileContent, readRegularFile } from "./regular-file.ts";
import { watchDirectory } from "./watched-directory.ts";

/** How long the content is used without reading the file again, in milliseconds. */
const FRESH_MS = 10_000;
/** In bytes. */
const LARGEST = 262_144;

/**
 * Returns a function that returns the text of a small file that may change, such as a token that Kubernetes rotates or
 * the certificate of an authority. It is read when its content is requested and the last read is more than ten seconds
 * ago. If it cannot be read, the last content stays; if it could never be read, the function rejects with the error of
 * `readRegularFile`.
 */
export function rereadFile(path: string): () => string | Promise<string> {
  let known: string | undefined;
  let readAt = -Infinity;
  let reading: Promise<string> | undefined;

  async function read(): Promise<string> {
    try {
      known = (await readRegularFile(path, LARGEST)).text;
    } catch (error) {
      if (known === undefined) throw error;
    }
    readAt = performance.now();
    return known;
  }

  return () => {
    if (known !== undefined && performance.now() - readAt < FRESH_MS) return known;
    reading ??= read().finally(() => (reading = undefined));
    return reading;
  };
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
