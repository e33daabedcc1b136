import { dirname, resolve } from "node:path";
import type { FileContent } from "./file-content.ts";
import { readRegularFile, readRegularFileSync } from "./regular-file.ts";
import { watchDirectory } from "./watched-directory.ts";

/** Neither function may throw. */
export interface WatchOptions {
  /** The maximum size in bytes, by default that of `readRegularFile`. A larger file is unreadable. */
  readonly maxBytes?: number;
  /** Called with each new content, and when the file becomes readable again. */
  onChange(content: FileContent): void;
  /** Called when the file becomes unreadable. */
  onUnreadable(error: unknown): void;
}

export interface WatchedFile {
  /** The content when the watch started. */
  readonly content: FileContent;
  close(): void;
}

/** Reads a file and watches it. Throws as `readRegularFile` does if the file cannot be read. */
export function watchFile(path: string, watching: WatchOptions): WatchedFile {
  const content = readRegularFileSync(path, watching.maxBytes);
  return { content, ...followFile(path, content.fingerprint, watching) };
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
