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
export function onEachPoll(poll: () => void): { close(): void } {
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

/** Detects, without reading them, that files were replaced or have a different time or size. */
export class FilePoller {
  readonly #paths: () => readonly string[];
  #stamp = "";
  #polls = 0;
  #polling: Promise<void> | undefined;

  /** @param paths returns the files to poll. The result may differ from call to call. */
  constructor(paths: () => readonly string[]) {
    this.#paths = paths;
  }

  /**
   * Records the current state. Call it before you read the files, so that the next poll detects changes made
   * meanwhile. Never rejects.
   */
  async begin(): Promise<void> {
    this.#stamp = await stampOf(this.#paths());
  }

  /**
   * Calls `changed` if the files have changed, and in every sixth poll in any case. Does nothing while the last poll
   * still waits for the file system.
   */
  poll(changed: () => void): void {
    this.#polling ??= this.#poll(changed).finally(() => (this.#polling = undefined));
  }

  async #poll(changed: () => void): Promise<void> {
    this.#polls += 1;
    const isDue = this.#polls % POLLS_PER_CHANGE === 0;
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
