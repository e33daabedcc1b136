import { existsSync, type FSWatcher, watch } from "node:fs";
import { basename, dirname, join } from "node:path";
import { stat } from "node:fs/promises";
import { callEach } from "../async/isolation.ts";

/** In milliseconds. */
const POLL_INTERVAL_MS = 5_000;
/** One poll in this many counts as a change in any case: a network file system may report old times. */
const POLLS_PER_CHANGE = 6;

/** All callbacks share one timer: with a timer for each, an idle process would wake up for each of them. */
const polling = new Set<() => void>();
let timer: NodeJS.Timeout | undefined;

/** Calls `poll` every five seconds, together with all others. Does not keep the process alive. */
function onEachPoll(poll: () => void): { close(): void } {
  polling.add(poll);
  timer ??= setInterval(() => {
    callEach(polling, (each) => each());
  }, POLL_INTERVAL_MS).unref();
  return {
    close() {
      polling.delete(poll);
      if (polling.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}

/** Returns a text that differs for different files and for different states of a file. Follows links. */
async function stampOf(paths: readonly string[]): Promise<string> {
  const stamps = await Promise.all(
    paths.map((path) =>
      stat(path, { bigint: true }).then(
        ({ dev, ino, size, mtimeNs, ctimeNs }) => [dev, ino, size, mtimeNs, ctimeNs].join(" "),
        () => "",
      ),
    ),
  );
  return stamps.join("\n");
}

/** Delay of a check after an event, in milliseconds, so that one check serves several events. */
const SETTLE_MS = 50;

/** The link that Kubernetes replaces in a mounted volume. */
const SWAPPED = "..data";

/**
 * Calls `check` soon (after 50 ms), and shortly after each event in a directory. Not every file system reports
 * events. So every five seconds it calls `check` if the directory or one of `files` was replaced or has a different
 * time or size, and every 30 seconds it calls `check` in any case. Calls never overlap. The directory itself may be
 * replaced, or its path may contain a link that Kubernetes replaces (`..data`): so its ancestors are watched, too,
 * and each check renews the watch on the directory. Does not keep the process alive.
 *
 * @param check must not reject.
 * @param files returns the paths of the files that `check` reads.
 */
export function watchDirectory(
  directory: string,
  check: () => Promise<void>,
  files: () => readonly string[],
): { close(): void } {
  let closed = false;
  const currentStamp = (): Promise<string> => stampOf([directory, ...files()]);
  let stamp = "";
  let polls = 0;
  let underWay: Promise<void> | undefined;
  let checking = Promise.resolve();
  let settling: NodeJS.Timeout | undefined;
  let inside: FSWatcher | undefined;

  async function rewatchAndCheck(): Promise<void> {
    if (closed) return;
    const before = inside;
    inside = watched(directory, scheduleCheck);
    before?.close();
    // Before the files are read, so that the next poll detects changes made meanwhile.
    stamp = await currentStamp();
    await check();
  }

  function scheduleCheck(): void {
    if (closed) return;
    settling ??= setTimeout(() => {
      settling = undefined;
      checking = checking.then(rewatchAndCheck);
    }, SETTLE_MS).unref();
  }

  async function poll(): Promise<void> {
    polls += 1;
    if (polls % POLLS_PER_CHANGE === 0 || (await currentStamp()) !== stamp) scheduleCheck();
  }

  const own = basename(directory);
  const outside = watchedAncestors(directory).map((ancestor, index) =>
    watched(ancestor, (name) => {
      if (name === null || name === SWAPPED || (index === 0 && name === own)) scheduleCheck();
    }),
  );
  const regular = onEachPoll(() => {
    // The last poll may still wait for the file system.
    underWay ??= poll().finally(() => (underWay = undefined));
  });
  scheduleCheck();
  return {
    close() {
      closed = true;
      regular.close();
      clearTimeout(settling);
      inside?.close();
      for (const watcher of outside) watcher?.close();
    },
  };
}

/**
 * Returns the parent directory, and every further ancestor that is a Kubernetes volume: the directory may be deep
 * inside one.
 */
function watchedAncestors(directory: string): string[] {
  const [parent = directory, ...further] = ancestors(directory);
  return [parent, ...further.filter((ancestor) => existsSync(join(ancestor, SWAPPED)))];
}

function ancestors(directory: string): string[] {
  const parent = dirname(directory);
  return parent === directory ? [] : [parent, ...ancestors(parent)];
}

/** Returns undefined if the directory does not exist or the system has no watches left. */
function watched(directory: string, onEvent: (name: string | null) => void): FSWatcher | undefined {
  try {
    const watcher = watch(directory, { persistent: false }, (_event, name) => onEvent(name));
    watcher.on("error", () => watcher.close());
    return watcher;
  } catch {
    return undefined;
  }
}
