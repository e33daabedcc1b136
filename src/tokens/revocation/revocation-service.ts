import type { Change } from "../../core/change.ts";
import type { Log } from "../../core/log.ts";
import {
  type PublishRevocations,
  type Revocation,
  REVOCATION_FORMS,
  REVOCATION_KEYS,
  REVOCATION_KINDS,
  type RevocationKindName,
} from "../../core/revocation.ts";
import type { Reloaded } from "../../core/status.ts";
import type { ShareRevocations } from "../../core/shared-parts.ts";
import type { Clock } from "../../lib/clock.ts";
import { type FileContent, readFailure } from "../../lib/files/regular-file.ts";
import { Journal, readJournal } from "./journal.ts";
import { RevocationList } from "./revocation-list.ts";
import { ConfigError, type ConfigProblem, describeProblem } from "../../core/config-problem.ts";
import { parsePositionedYaml, type YamlPath } from "../../lib/files/positioned-yaml.ts";
import { type FollowedFile, followFile } from "../../lib/files/watched-file.ts";
import { orList } from "../../lib/text/printable.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { isName, TIME_EXPECTED, timeFrom } from "./revocation-kinds.ts";

/** An entry of the revocation file. It does not expire. */
export type Listed = Omit<Revocation, "until">;

/** Reports a problem at a position of the revocation file, which lists nothing there. */
type Refuse = (path: YamlPath, of: "key" | "value", message: string) => [];

/**
 * Reads a revocation file. The keys of all kinds are optional. An empty file revokes nothing.
 *
 * @throws ConfigError with all problems and their positions.
 */
export function readRevocationFile({ text, path: file }: FileContent): Listed[] {
  const yaml = parsePositionedYaml(text, file);
  const problems: ConfigProblem[] = [...yaml.problems];
  const refuse: Refuse = (path, of, message) => {
    problems.push({ file, ...yaml.positionOf(path, of), message });
    return [];
  };
  const listed = yaml.value === undefined ? [] : readKeys(yaml.value, refuse);
  if (problems.length > 0) throw new ConfigError(problems);
  return listed;
}

function readKeys(value: unknown, refuse: Refuse): Listed[] {
  if (value === null) return [];
  if (!isJsonObject(value)) {
    return refuse([], "value", `the file must hold ${orList(REVOCATION_KEYS)}`);
  }
  return Object.entries(value).flatMap(([key, written]) => {
    const kind = REVOCATION_KINDS.find((each) => REVOCATION_FORMS[each].fileKey === key);
    if (kind === undefined) {
      const known = REVOCATION_KEYS.join(", ");
      return refuse([key], "key", `this key is unknown; known are ${known}`);
    }
    return readListed(kind, written, (path, of, message) =>
      refuse([key, ...path], of, path.length === 0 ? `${key} ${message}` : message),
    );
  });
}

/** Reads the value of a key in the revocation file: that of a kind. */
function readListed(kind: RevocationKindName, value: unknown, refuse: Refuse): Listed[] {
  const { named, dated } = REVOCATION_FORMS[kind];
  if (named === undefined) {
    const before = timeFrom(value);
    return before === undefined ? refuse([], "value", TIME_EXPECTED) : [{ kind, name: "", before }];
  }
  if (dated) {
    if (!isJsonObject(value)) {
      return refuse([], "value", `must name ${named.plural}, each with a time`);
    }
    return Object.entries(value).flatMap(([name, written]): Listed[] => {
      const before = timeFrom(written);
      if (!isName(name)) return refuse([name], "key", `must be the name of a ${named.word}`);
      if (before === undefined) return refuse([name], "value", TIME_EXPECTED);
      return [{ kind, name, before }];
    });
  }
  if (!Array.isArray(value)) return refuse([], "value", `must be a list of ${named.plural}`);
  return value.flatMap((name, place) =>
    isName(name)
      ? [{ kind, name }]
      : refuse([place], "value", `must be the ${named.word} of a token, as text`),
  );
}

export interface RevocationServiceOptions {
  /** Keeps revocations for the next start. Without it, they are lost. */
  readonly journal: string | undefined;
  /** The content of the revocation file; undefined if there is none. */
  readonly file: FileContent | undefined;
  /** Informs other replicas, and keeps revocations for those that start later; undefined if nothing is shared. */
  readonly share?: ShareRevocations | undefined;
  /** Called after each later reading of the file. */
  readonly reloaded: Reloaded;
  readonly clock: Clock;
  readonly log: Log;
}

const FORGET_EVERY_MS = 10_000;

/**
 * All revocations of a process: those from the file, from the journal, and those published here. Other sources pass
 * theirs to `arrived` and receive ours through `list.onChange`.
 */
export class RevocationService {
  readonly list = new RevocationList();
  readonly #options: RevocationServiceOptions;
  #journal: Journal | undefined;
  #file: (FollowedFile & { readonly path: string }) | undefined;
  readonly #forgetting: NodeJS.Timeout;

  private constructor(options: RevocationServiceOptions) {
    this.#options = options;
    this.#forgetting = startForgetting(this.list, options.clock);
  }

  /** @throws ConfigError if the journal or the file cannot be used. */
  static async open(options: RevocationServiceOptions): Promise<RevocationService> {
    const service = new RevocationService(options);
    try {
      service.#changeFile(options.file);
      await service.#openJournal();
      return service;
    } catch (error) {
      await service.close();
      throw error;
    }
  }

  /**
   * Revokes tokens. Takes effect in this thread at once, and in other threads when they next look. Resolves with
   * whether the revocations are stored.
   */
  readonly publish: PublishRevocations = async (revocations) => {
    this.arrived(revocations);
    const kept = await Promise.all([
      this.#journal?.write(revocations),
      this.#options.share?.(revocations),
    ]);
    return kept.includes(true);
  };

  /** Whether revocations can be kept for the next start, if a journal is configured. */
  get journalWritable(): boolean {
    return this.#journal?.writable ?? true;
  }

  /** Receives revocations from other replicas. */
  arrived(revocations: readonly Revocation[]): void {
    this.list.take({ added: revocations });
  }

  /** Prepares another revocation file, or new content of the same one. @throws ConfigError if it cannot be used. */
  prepare(content: FileContent | undefined): Change {
    if (content !== undefined && content.path !== this.#file?.path) readRevocationFile(content);
    return { commit: async () => this.#changeFile(content), rollback: () => undefined };
  }

  async close(): Promise<void> {
    clearInterval(this.#forgetting);
    this.#file?.close();
    await this.#journal?.close();
  }

  #changeFile(content: FileContent | undefined): void {
    if (content !== undefined && content.path === this.#file?.path) {
      this.#file.accept(content);
      return;
    }
    const listed = content === undefined ? [] : readRevocationFile(content);
    if (content === undefined && this.#file === undefined) return;
    this.#file?.close();
    this.list.take({ listed });
    this.#file = content && { path: content.path, ...this.#followed(content) };
  }

  /** Follows a file whose content has been applied. If it becomes invalid, logs an error and keeps the last entries. */
  #followed({ path: file, fingerprint }: FileContent): FollowedFile {
    const { log, reloaded } = this.#options;
    const unusable = (problems: readonly string[]): void => {
      log.error("the revocation file cannot be used: what it listed before stays revoked", {
        file,
        problems,
      });
      reloaded(problems);
    };
    return followFile(file, fingerprint, {
      onChange: (next) => {
        try {
          const listed = readRevocationFile(next);
          this.list.take({ listed });
          log.info("the revocation file was read again", { file, entries: listed.length });
          reloaded([]);
        } catch (error) {
          unusable(error instanceof ConfigError ? error.problems.map(describeProblem) : [file]);
        }
      },
      onUnreadable: (error) => unusable([`${file}: cannot be read (${readFailure(error)})`]),
    });
  }

  async #openJournal(): Promise<void> {
    const { journal: path, clock, log } = this.#options;
    if (path === undefined) return;
    const { revocations, torn } = readJournal(path);
    if (torn) log.warn("the last line of the journal of revocations was cut off", { file: path });
    const now = clock.now();
    this.arrived(revocations.filter(({ until }) => until > now));
    this.#journal = await Journal.open({ path, log, list: this.list });
  }
}

/** Forgets revocations of expired tokens at intervals, part of them at a time. Does not keep the process running. */
export function startForgetting(list: RevocationList, clock: Clock): NodeJS.Timeout {
  return setInterval(() => list.forget(clock.now()), FORGET_EVERY_MS).unref();
}
