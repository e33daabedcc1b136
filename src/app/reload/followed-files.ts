import { type FollowedFile, followFile } from "../../lib/files/watched-file.ts";

/** Watches the files from which the configuration in force was read. */
export class FollowedFiles {
  readonly #followed = new Map<string, FollowedFile>();
  readonly #changed: () => void;

  /** @param changed called when a file has changed, disappeared, or reappeared. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /**
   * Watches exactly these files. Files that are already watched stay so. If a new file has changed since it was read,
   * this is reported, so that no change is lost.
   *
   * @param files the files with the fingerprints of the contents that were read; undefined for a file that could not be
   * read.
   */
  follow(files: ReadonlyMap<string, string | undefined>): void {
    for (const [file, followed] of this.#followed) {
      if (files.has(file)) continue;
      followed.close();
      this.#followed.delete(file);
    }
    const watching = { onChange: this.#changed, onUnreadable: this.#changed };
    for (const [file, print] of files) {
      if (!this.#followed.has(file)) this.#followed.set(file, followFile(file, print, watching));
    }
  }

  close(): void {
    for (const followed of this.#followed.values()) followed.close();
    this.#followed.clear();
  }
}
