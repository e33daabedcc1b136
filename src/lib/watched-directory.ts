import { type FSWatcher, watch } from "node:fs";
import { basename, dirname } from "node:path";

const LOOK_EVERY_MS = 5_000;
const SETTLE_MS = 50;

/**
 * Calls `look` soon after something happened in a directory, at once, and every five seconds, since not every file system
 * tells of changes; never twice at a time. The directory may itself be replaced, or be a link into what Kubernetes swaps
 * (`..data`), so its parent is watched for that, and the directory anew at every look. Does not keep the program running.
 * @param look must not reject.
 */
export function watchDirectory(directory: string, look: () => Promise<void>): { close(): void } {
  let closed = false;
  let looking = Promise.resolve();
  let settling: NodeJS.Timeout | undefined;
  let inside: FSWatcher | undefined;

  async function followAndLook(): Promise<void> {
    if (closed) return;
    const before = inside;
    inside = watched(directory, lookSoon);
    before?.close();
    await look();
  }

  function lookSoon(): void {
    settling ??= setTimeout(() => {
      settling = undefined;
      looking = looking.then(followAndLook);
    }, SETTLE_MS).unref();
  }

  const own = basename(directory);
  const outside = watched(dirname(directory), (name) => {
    if (name === null || name === own || name === "..data") lookSoon();
  });
  const timer = setInterval(lookSoon, LOOK_EVERY_MS).unref();
  lookSoon();
  return {
    close() {
      closed = true;
      clearInterval(timer);
      clearTimeout(settling);
      inside?.close();
      outside?.close();
    },
  };
}

/** Undefined where there is nothing, or the system has no watch left to give. */
function watched(
  directory: string,
  happened: (name: string | null) => void,
): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, (_event, name) => happened(name));
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
