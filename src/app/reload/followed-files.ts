import { type FollowedFile, followFile } from "../../lib/files/watched-file.ts";

/** Watches the files that the configuration in force was read from. */
export class FollowedFiles {
  readonly #followed = new Map<string, FollowedFile>();
  readonly #changed: () => void;

  /** @param changed called when a file has changed, disappeared, or reappeared. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  /**
   * Watches exactly these files. Keeps watching files that it already watches, and reports a change to a new file
   * since it was read, so that no change is lost.
   *
   * @param files with the fingerprint of the content that was read; undefined for one that could not be read.
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
