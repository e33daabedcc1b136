import { hash } from "node:crypto";
import { type FSWatcher, readFileSync, watch } from "node:fs";
import { readFile } from "node:fs/promises";
import { dirname } from "node:path";

const LOOK_EVERY_MS = 5_000;
const SETTLE_MS = 50;

/** Neither function may throw. */
export interface FileWatching {
  /** Called with the new content, once for each content. */
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
 * Reads a file and tells of every later content. The directory is watched, not the file: editors and Kubernetes replace a
 * file by renaming (`..data`), and a watch would stay on the old one. A timer compares the content as well, since not every
 * file system tells of changes. Neither keeps the program running. Throws the `fs` error when the file cannot be read now.
 */
export function watchFile(path: string, { changed, unreadable }: FileWatching): WatchedFile {
  const content = readFileSync(path);
  let seen = fingerprint(content);
  let readable = true;
  let closed = false;
  let looking = Promise.resolve();
  let settling: NodeJS.Timeout | undefined;

  async function look(): Promise<void> {
    let latest: Buffer;
    try {
      latest = await readFile(path);
    } catch (error) {
      if (readable && !closed) unreadable(error);
      readable = false;
      return;
    }
    readable = true;
    const print = fingerprint(latest);
    if (print === seen || closed) return;
    seen = print;
    changed(latest);
  }

  function lookSoon(): void {
    settling ??= setTimeout(() => {
      settling = undefined;
      looking = looking.then(look);
    }, SETTLE_MS).unref();
  }

  const timer = setInterval(lookSoon, LOOK_EVERY_MS).unref();
  const watcher = watchDirectory(dirname(path), lookSoon);
  return {
    content,
    close() {
      closed = true;
      clearInterval(timer);
      clearTimeout(settling);
      watcher?.close();
    },
  };
}

/** Undefined where the system has no watch left to give: then the timer alone finds changes. */
function watchDirectory(directory: string, onEvent: () => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, onEvent);
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}

function fingerprint(content: Buffer): string {
  return hash("sha256", content, "base64url");
}
