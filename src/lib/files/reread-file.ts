import { readRegularFile } from "./regular-file.ts";

/** How long the content is used without reading the file again, in milliseconds. */
const FRESH_MS = 10_000;
/** In bytes. */
const LARGEST = 262_144;

/**
 * A small file that may change, such as a token that Kubernetes rotates or the certificate of an authority. It is
 * read when its content is requested and the last read is more than ten seconds ago. If it cannot be read, the last
 * content stays.
 */
export class RereadFile {
  readonly #path: string;
  #text: string | undefined;
  #readAt = -Infinity;
  #reading: Promise<string> | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** Returns the content as text. Rejects with the error of `readRegularFile` if the file could never be read. */
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
