import { existsSync, type FSWatcher, watch } from "node:fs";
import { basename, dirname, join } from "node:path";

const LOOK_EVERY_MS = 5_000;
const SETTLE_MS = 50;

/** The link that Kubernetes swaps, in the directory that it mounts. */
const SWAPPED = "..data";

/**
 * Calls `look` soon after something happened in a directory, at once, and every five seconds, since not every file system
 * tells of changes; never twice at a time. The directory may itself be replaced, or lie behind a link into what Kubernetes
 * swaps (`..data`), so those above it are watched for that, and the directory anew at every look. Does not keep the program
 * running.
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
  const outside = placesAbove(directory).map((place, index) =>
    watched(place, (name) => {
      if (name === null || name === SWAPPED || (index === 0 && name === own)) lookSoon();
    }),
  );
  const timer = setInterval(lookSoon, LOOK_EVERY_MS).unref();
  lookSoon();
  return {
    close() {
      closed = true;
      clearInterval(timer);
      clearTimeout(settling);
      inside?.close();
      for (const watcher of outside) watcher?.close();
    },
  };
}

/** The directory above, and every further one that Kubernetes mounts: a file of a volume may lie deep in it. */
function placesAbove(directory: string): string[] {
  const [parent = directory, ...further] = ancestors(directory);
  return [parent, ...further.filter((place) => existsSync(join(place, SWAPPED)))];
}

function ancestors(directory: string): string[] {
  const parent = dirname(directory);
  return parent === directory ? [] : [parent, ...ancestors(parent)];
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
