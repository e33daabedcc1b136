import { stat } from "node:fs/promises";

/** Interval between looks, in milliseconds. */
const LOOK_INTERVAL_MS = 5_000;
/** One look in this many counts as a change in any case: a network file system may report old times. */
const LOOKS_PER_CHANGE = 6;

/** All callbacks share one timer: with a timer for each, an idle process would wake up for each of them. */
const looking = new Set<() => void>();
let timer: NodeJS.Timeout | undefined;

/** Calls `look` every five seconds, together with all others. Does not keep the process alive. */
export function atEachLook(look: () => void): { close(): void } {
  looking.add(look);
  timer ??= setInterval(() => {
    for (const each of looking) each();
  }, LOOK_INTERVAL_MS).unref();
  return {
    close() {
      looking.delete(look);
      if (looking.size > 0) return;
      clearInterval(timer);
      timer = undefined;
    },
  };
}

/** Detects, without reading them, that files were replaced or have a different time or size. */
export class PeriodicLook {
  readonly #paths: () => readonly string[];
  #stamp = "";
  #looks = 0;
  #looking: Promise<void> | undefined;

  /** @param paths returns the files to look at. The result may differ from call to call. */
  constructor(paths: () => readonly string[]) {
    this.#paths = paths;
  }

  /**
   * Records the current state. Call it before you read the files, so that the next look detects changes made
   * meanwhile. Never rejects.
   */
  async begin(): Promise<void> {
    this.#stamp = await stampOf(this.#paths());
  }

  /**
   * Calls `changed` if the files have changed, and in every sixth look in any case. Does nothing while the last look
   * still waits for the file system.
   */
  look(changed: () => void): void {
    this.#looking ??= this.#look(changed).finally(() => (this.#looking = undefined));
  }

  async #look(changed: () => void): Promise<void> {
    this.#looks += 1;
    const isDue = this.#looks % LOOKS_PER_CHANGE === 0;
    if (isDue || (await stampOf(this.#paths())) !== this.#stamp) changed();
  }
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
