import { formatDuration } from "../../lib/text/duration.ts";
import { printable } from "../../lib/text/printable.ts";
import type { Terminal } from "../command.ts";

const EVERY_MS = 2_000;

/**
 * Runs `work`. If standard error is a terminal, prints there every two seconds what the command is waiting for.
 *
 * @param words returns what it is waiting for now.
 */
export async function withProgress<T>(
  { err }: Pick<Terminal, "err">,
  words: () => string,
  work: () => Promise<T>,
  shown = process.stderr.isTTY,
): Promise<T> {
  if (!shown) return work();
  const started = performance.now();
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - started) / 1000) * 1000;
    err(`${formatDuration(seconds)}: ${printable(words())}\n`);
  }, EVERY_MS).unref();
  try {
    return await work();
  } finally {
    clearInterval(timer);
  }
}

/** The names of promises that are pending. */
export class Pending {
  readonly #names = new Set<string>();

  /** Includes the name until the promise is settled. Returns a promise with the same result. */
  add<T>(name: string, promise: Promise<T>): Promise<T> {
    this.#names.add(name);
    return promise.finally(() => this.#names.delete(name));
  }

  toString(): string {
    return [...this.#names].join(", ");
  }
}
