import { fingerprint } from "../lib/fingerprint.ts";
import { type WatchedFile, watchFile } from "../lib/watched-file.ts";

/** Watches the files that the configuration in force was read from. */
export class FollowedFiles {
  readonly #watched = new Map<string, WatchedFile>();
  readonly #changed: () => void;

  /** @param changed called when one of them has another content, is gone, or is there again. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /**
   * Follows these and no others. Those that are followed already are not let go in between, and what has happened to a new
   * one since it was read is told: so no change is lost.
   *
   * @param files with the fingerprint of what each held when it was read.
   */
  follow(files: ReadonlyMap<string, string>): void {
    for (const [file, watched] of this.#watched) {
      if (files.has(file)) continue;
      watched.close();
      this.#watched.delete(file);
    }
    for (const [file, print] of files) {
      if (!this.#watched.has(file)) this.#begin(file, print);
    }
  }

  close(): void {
    for (const watched of this.#watched.values()) watched.close();
    this.#watched.clear();
  }

  #begin(file: string, print: string): void {
    const changed = this.#changed;
    try {
      const watched = watchFile(file, { changed, unreadable: changed });
      this.#watched.set(file, watched);
      if (fingerprint(watched.content) !== print) changed();
    } catch {
      changed(); // it has gone since
    }
  }
}
