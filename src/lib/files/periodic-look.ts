import { stat } from "node:fs/promises";

/** Interval between looks, in milliseconds. */
const LOOK_INTERVAL_MS = 5_000;
/** One look in this many counts as a change in any case: a network file system may report old times. */
const LOOKS_PER_CHANGE = 6;

/** What looks at the same time: with a timer for each, an idle process would wake as often. */
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

/** Looks at files without reading them: whether one is another one, or has another time or size. */
export class PeriodicLook {
  readonly #paths: () => readonly string[];
  #stamp = "";
  #looks = 0;
  #looking: Promise<void> | undefined;

  /** @param paths gives the files to look at, which may be others each time. */
  constructor(paths: () => readonly string[]) {
    this.#paths = paths;
  }

  /** To be called before they are read: what changes meanwhile is seen by the next look. Never rejects. */
  async begin(): Promise<void> {
    this.#stamp = await stampOf(this.#paths());
  }

  /** Calls `changed` if they have changed, and every so often. Does nothing while the file system does not answer. */
  look(changed: () => void): void {
    this.#looking ??= this.#look(changed).finally(() => (this.#looking = undefined));
  }

  async #look(changed: () => void): Promise<void> {
    this.#looks += 1;
    const isDue = this.#looks % LOOKS_PER_CHANGE === 0;
    if (isDue || (await stampOf(this.#paths())) !== this.#stamp) changed();
  }
}

/** Tells files, behind links, from others and from earlier ones. */
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
