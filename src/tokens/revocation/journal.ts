import { ConfigError } from "../../core/config-problem.ts";
import type { Log } from "../../core/log.ts";
import type { Revocation } from "../../core/revocation.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import { appendToJournal, linesOf, replaceJournal } from "./journal-file.ts";

export interface JournalOptions {
  readonly path: string;
  /** All revocations that the journal must contain. */
  readonly kept: () => readonly Revocation[];
  /** Their number. */
  readonly count: () => number;
  readonly log: Log;
}

/** The journal is rewritten when it has more than twice the lines that it needs, plus this many. */
const SPARE_LINES = 1_000;
/** Delay before a failed write is retried, in milliseconds. */
const RETRY_MS = 5_000;

/**
 * Keeps revocations for the next start. Those that arrive while the disk is busy are written together. Each is
 * confirmed once it is on the disk.
 */
export class Journal {
  readonly #options: JournalOptions;
  #lines = 0;
  /**
   * Whether the file may be missing revocations or end in half a line. If so, the next write replaces the whole file.
   */
  #broken = false;
  #waiting: Revocation[] = [];
  #writing: Promise<boolean> | undefined;
  #retrying: NodeJS.Timeout | undefined;

  private constructor(options: JournalOptions) {
    this.#options = options;
  }

  /** Rewrites the journal. @throws ConfigError if it cannot be written. */
  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options);
    try {
      await journal.#replace();
    } catch (error) {
      const message = `the journal of revocations cannot be written (${codeOrMessage(error)})`;
      throw new ConfigError([{ file: options.path, message }]);
    }
    return journal;
  }

  /** Whether the last write succeeded. */
  get writable(): boolean {
    return !this.#broken;
  }

  /** Resolves with whether they are on the disk. Never rejects: failed writes are retried. */
  write(revocations: readonly Revocation[]): Promise<boolean> {
    this.#waiting = [...this.#waiting, ...revocations];
    const before = this.#writing ?? Promise.resolve(true);
    const writing = before.then(() => this.#writeWaiting());
    this.#writing = writing;
    return writing;
  }

  async close(): Promise<void> {
    clearTimeout(this.#retrying);
    await this.#writing;
  }

  async #writeWaiting(): Promise<boolean> {
    const waiting = this.#waiting;
    this.#waiting = [];
    // An earlier write has included them.
    if (waiting.length === 0 && !this.#broken) return true;
    const { path, count, log } = this.#options;
    try {
      const most = 2 * count() + SPARE_LINES;
      if (this.#broken || this.#lines + waiting.length > most) await this.#replace();
      // The append fails if somebody has moved the file away, or may have written only some of the lines.
      else await this.#append(waiting).catch(() => this.#replace());
      this.#broken = false;
      return true;
    } catch (error) {
      this.#broken = true;
      log.error("revocations cannot be written: they are lost at a restart", {
        file: path,
        reason: codeOrMessage(error),
      });
      clearTimeout(this.#retrying);
      this.#retrying = setTimeout(() => void this.write([]), RETRY_MS).unref();
      return false;
    }
  }

  async #append(waiting: readonly Revocation[]): Promise<void> {
    await appendToJournal(this.#options.path, linesOf(waiting));
    this.#lines += waiting.length;
  }

  async #replace(): Promise<void> {
    const kept = this.#options.kept();
    await replaceJournal(this.#options.path, linesOf(kept));
    this.#lines = kept.length;
  }
}
