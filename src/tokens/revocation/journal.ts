import { accessSync, constants } from "node:fs";
import { open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../../core/config-problem.ts";
import type { Log } from "../../core/log.ts";
import { type Revocation, REVOCATION_FORMS, REVOCATION_KINDS } from "../../core/revocation.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import { readFailure, readRegularFileSync, UNLINKED } from "../../lib/files/regular-file.ts";
import { replaceFile } from "../../lib/files/private-file.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { isName } from "./revocation-kinds.ts";
import type { RevocationList } from "./revocation-list.ts";

/** The journal file: one revocation per line, as JSON. */

/** Maximum size in bytes: about 600,000 revocations. */
const LARGEST = 64 * 1024 ** 2;
/** A symbolic link could redirect writes; opening a pipe would block forever. */
const APPEND =
  constants.O_WRONLY | constants.O_APPEND | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * Reads a journal; a missing file counts as empty.
 *
 * @throws ConfigError if the file cannot be read, and for an invalid line: ignoring it could let in a revoked token.
 */
export function readJournal(path: string) {
  const text = textOf(path);
  const lines = text.split("\n");
  const last = lines.pop() ?? "";
  const revocations = lines.map((line, index) => {
    const revocation = revocationIn(line);
    if (revocation !== undefined) return revocation;
    const message =
      "is not a revocation: fix the line, since ignoring it could let a revoked token in";
    throw new ConfigError([{ file: path, line: index + 1, column: 1, message }]);
  });
  return {
    revocations,
    /** Whether the last line is incomplete. Its revocation was never confirmed. */
    torn: last !== "",
  };
}

function textOf(path: string): string {
  try {
    return readRegularFileSync(path, LARGEST, UNLINKED).text;
  } catch (error) {
    const code = readFailure(error);
    if (code === "ENOENT") return "";
    if (code === "ELOOP") throw refused(path, "is a symbolic link, which is not followed");
    throw refused(path, `cannot be read (${code})`);
  }
}

/** Checks whether a journal could be kept. @throws ConfigError if it could not. */
export function checkJournal(path: string): void {
  readJournal(path);
  try {
    accessSync(dirname(path), constants.W_OK | constants.X_OK);
  } catch (error) {
    throw refused(path, `cannot be written (${readFailure(error)})`);
  }
}

function refused(file: string, message: string): ConfigError {
  return new ConfigError([{ file, message: `the journal of revocations ${message}` }]);
}

function revocationIn(line: string): Revocation | undefined {
  let value: unknown;
  try {
    // Not strictly: these are our own lines, of which there may be 600,000.
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { kind: written, name, issuer, before, until } = value;
  const kind = REVOCATION_KINDS.find((each) => each === written);
  if (kind === undefined || typeof name !== "string" || typeof until !== "number") return undefined;
  const form = REVOCATION_FORMS[kind];
  if (form.named !== undefined && !isName(name)) return undefined;
  if (form.dated && typeof before !== "number") return undefined;
  return {
    kind,
    name,
    until,
    ...(typeof issuer === "string" ? { issuer } : {}),
    ...(typeof before === "number" ? { before } : {}),
  };
}

export function linesOf(revocations: readonly Revocation[]): string {
  return revocations.map((each) => `${JSON.stringify(each)}\n`).join("");
}

interface JournalOptions {
  readonly path: string;
  /** Has the revocations that the journal must contain. */
  readonly list: Pick<RevocationList, "added" | "addedSize">;
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
  /** Whether the file may lack revocations or end in half a line. The next write then replaces it. */
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
    const { path, list, log } = this.#options;
    try {
      const most = 2 * list.addedSize + SPARE_LINES;
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

  /** Rejects with the system's error; part of the lines may have been written then. */
  async #append(waiting: readonly Revocation[]): Promise<void> {
    await using file = await open(this.#options.path, APPEND);
    await file.writeFile(linesOf(waiting));
    await file.datasync();
    this.#lines += waiting.length;
  }

  /** Replaces the journal atomically, with mode 0600. Rejects with the system's error; the journal is unchanged then. */
  async #replace(): Promise<void> {
    const { path, list } = this.#options;
    const all = list.added();
    const draft = `${path}.${process.pid}.new`;
    await rm(draft, { force: true });
    await replaceFile(path, draft, linesOf(all));
    await using directory = await open(dirname(path), constants.O_RDONLY);
    await directory.sync();
    this.#lines = all.length;
  }
}
