import { readRegularFile } from "./regular-file.ts";

/** How long a content is taken to be the latest, in milliseconds. */
const FRESH_MS = 10_000;
const LARGEST = 262_144;

/**
 * A small file whose content is read again while it is in use, ten seconds after the last reading at the latest: a token that
 * Kubernetes rotates, or a certificate of an authority. A file that cannot be read keeps its last content.
 */
export class RereadFile {
  readonly #path: string;
  #text: string | undefined;
  #readAt = -Infinity;
  #reading: Promise<string> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** The content as text. Rejects with the error of `readRegularFile` when it never could be read. */
  text(): string | Promise<string> {
    if (this.#text !== undefined && performance.now() - this.#readAt < FRESH_MS) return this.#text;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<string> {
    try {
      const { text } = await readRegularFile(this.#path, LARGEST);
      this.#text = text;
    } catch (error) {
      if (this.#text === undefined) throw error;
    }
    this.#readAt = performance.now();
    return this.#text;
  }
}
