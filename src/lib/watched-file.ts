import { dirname, resolve } from "node:path";
import { fingerprint } from "./fingerprint.ts";
import { readRegularFile, readRegularFileSync } from "./regular-file.ts";
import { watchDirectory } from "./watched-directory.ts";

/** Neither function may throw. */
export interface FileWatching {
  /** In bytes; left out, what `readRegularFile` takes. A larger one is unreadable. */
  readonly largest?: number;
  /** Called with the new content, once for each content, and when the file can be read again. */
  changed(content: Buffer): void;
  /** Called when the file cannot be read any more, once until it can be again. */
  unreadable(error: unknown): void;
}

export interface WatchedFile {
  /** What the file held when the watch began. */
  readonly content: Buffer;
  close(): void;
}

/**
 * Reads a file and tells of every later content. Its directory is watched, not the file: editors and Kubernetes replace a
 * file by renaming, and a watch would stay on the old one. Contents are compared at every look. Does not keep the program
 * running. Throws as `readRegularFile` does when the file cannot be read now.
 */
export function watchFile(path: string, watching: FileWatching): WatchedFile {
  const { changed, unreadable, largest } = watching;
  const content = readRegularFileSync(path, largest);
  let seen = fingerprint(content);
  let readable = true;
  let closed = false;

  async function look(): Promise<void> {
    let latest: Buffer;
    try {
      latest = await readRegularFile(path, largest);
    } catch (error) {
      if (readable && !closed) unreadable(error);
      readable = false;
      return;
    }
    const print = fingerprint(latest);
    const same = readable && print === seen;
    readable = true;
    if (same || closed) return;
    seen = print;
    changed(latest);
  }

  const directory = watchDirectory(dirname(resolve(path)), look);
  return {
    content,
    close() {
      closed = true;
      directory.close();
    },
  };
}
