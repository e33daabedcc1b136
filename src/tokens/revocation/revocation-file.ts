import { ConfigError, type ConfigProblem, describeProblem } from "../../core/config-problem.ts";
import type { Reloaded } from "../../core/status.ts";
import type { Log } from "../../core/log.ts";
import {
  REVOCATION_FORMS,
  REVOCATION_KEYS,
  REVOCATION_KINDS,
  type RevocationNews,
} from "../../core/revocation.ts";
import { type FileContent, readFailure } from "../../lib/files/regular-file.ts";
import { parsePositionedYaml, type YamlPath } from "../../lib/files/positioned-yaml.ts";
import { type FollowedFile, followFile } from "../../lib/files/watched-file.ts";
import { orList } from "../../lib/text/printable.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
import { type Listed, revocationKind } from "./revocation-kinds.ts";

/** The kinds by their key in the file. */
const BY_KEY = new Map(
  REVOCATION_KINDS.flatMap((kind) => {
    const { fileKey } = REVOCATION_FORMS[kind];
    return fileKey === undefined ? [] : [[fileKey, revocationKind(kind)] as const];
  }),
);

/**
 * Reads a revocation file. The keys of all kinds are optional. An empty file revokes nothing.
 *
 * @throws ConfigError with all problems and their positions.
 */
export function readRevocationFile({ text, path: file }: FileContent): Listed[] {
  const yaml = parsePositionedYaml(text, file);
  const problems: ConfigProblem[] = [...yaml.problems];
  const refuse = (path: YamlPath, of: "key" | "value", message: string): void => {
    problems.push({ file, ...yaml.positionOf(path, of), message });
  };
  const listed = yaml.value === undefined ? [] : readKeys(yaml.value, refuse);
  if (problems.length > 0) throw new ConfigError(problems);
  return listed;
}

function readKeys(
  value: unknown,
  refuse: (path: YamlPath, of: "key" | "value", message: string) => void,
): Listed[] {
  if (value === null) return [];
  if (!isJsonObject(value)) {
    refuse([], "value", `the file must hold ${orList(REVOCATION_KEYS)}`);
    return [];
  }
  return Object.entries(value).flatMap(([key, written]) => {
    const kind = BY_KEY.get(key);
    if (kind !== undefined) {
      return kind.read(written, (path, of, message) =>
        refuse([key, ...path], of, path.length === 0 ? `${key} ${message}` : message),
      );
    }
    refuse([key], "key", `this key is unknown; known are ${REVOCATION_KEYS.join(", ")}`);
    return [];
  });
}

export interface RevocationFileOptions {
  readonly log: Log;
  readonly changed: (news: RevocationNews) => void;
  /** Called after each later reading. */
  readonly reloaded: Reloaded;
}

/** A revocation file that is read again when it changes. */
export interface FollowedRevocations extends FollowedFile {
  readonly path: string;
}

/** Follows a file whose content has been applied. If it becomes invalid, logs an error and keeps the last entries. */
export function followRevocations(
  { path: file, fingerprint }: FileContent,
  { log, changed, reloaded }: RevocationFileOptions,
): FollowedRevocations {
  const unusable = (problems: readonly string[]): void => {
    log.error("the revocation file cannot be used: what it listed before stays revoked", {
      file,
      problems,
    });
    reloaded(problems);
  };
  const followed = followFile(file, fingerprint, {
    onChange(next) {
      try {
        const listed = readRevocationFile(next);
        changed({ listed });
        log.info("the revocation file was read again", { file, entries: listed.length });
        reloaded([]);
      } catch (error) {
        unusable(error instanceof ConfigError ? error.problems.map(describeProblem) : [file]);
      }
    },
    onUnreadable: (error) => unusable([`${file}: cannot be read (${readFailure(error)})`]),
  });
  return { path: file, ...followed };
}
