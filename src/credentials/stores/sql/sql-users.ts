import type { Log } from "../../../core/log.ts";
import { decoyHash } from "../../hashing/new-hash.ts";
import { readPasswordHash } from "../../hashing/password-hash.ts";
import type { HashSource, UserRecord } from "../hash-store.ts";
import {
  isAskable,
  sendableGroups,
  type StoreAccess,
  StoreUnavailable,
} from "../remote/store-access.ts";
import type { StoreHint } from "../user-store.ts";

/** A row of a result, by column name. */
export type Row = Readonly<Record<string, unknown>>;

export interface SqlSource {
  /** For the log. */
  readonly store: string;
  readonly access: StoreAccess;
  readonly log: Log;
  /** Runs the configured query for a name. Returns at most two rows. Stops when the time is over. */
  rows(username: string, leftMs: number): Promise<readonly Row[]>;
}

/** Number of hashes remembered, so that an unknown name costs as much as a known one. */
const REMEMBERED = 32;

/** The users of a database. Each user is looked up at login. */
export function sqlUsers({ store, access, log, rows }: SqlSource): HashSource {
  const seen: string[] = [];
  const none = [decoyHash()];
  let next = 0;
  return {
    async find(username, origin) {
      if (!isAskable(username)) return undefined;
      return access.run(origin, async (leftMs) => {
        const record = recordOf(await rows(username, leftMs), username, { store, log });
        if (record !== undefined) {
          seen[next] = record.password;
          next = (next + 1) % REMEMBERED;
        }
        return record;
      });
    },
    passwords: () => (seen.length === 0 ? none : seen),
  };
}

/** What an operator can do if the query returns unsuitable columns. */
export const COLUMNS_HINT: StoreHint = [/password_hash/, "docs/users.md lists the columns"];

/**
 * Checks the columns of a query.
 * @returns what is wrong with them; undefined if they are valid.
 */
export function columnsFault(names: readonly string[]): string | undefined {
  if (names.includes("password_hash")) return undefined;
  return "the query returns no column password_hash: add AS password_hash to the right column";
}

/** @throws StoreUnavailable if the rows do not describe exactly one user. */
function recordOf(
  rows: readonly Row[],
  username: string,
  { store, log }: Pick<SqlSource, "store" | "log">,
): UserRecord | undefined {
  const [row, another] = rows;
  if (row === undefined) return undefined;
  if (another !== undefined)
    throw new StoreUnavailable("the query returns several rows for one name");
  const fault = columnsFault(Object.keys(row));
  if (fault !== undefined) throw new StoreUnavailable(fault);
  const name = row["name"] ?? username;
  if (typeof name !== "string" || !isAskable(name)) {
    throw new StoreUnavailable("the column name does not contain a valid name");
  }
  const groups = sendableGroups(groupsIn(row["groups"]), name, store, log);
  const usable = { name, groups, disabled: disabledIn(row["disabled"]) };
  const hash = row["password_hash"] ?? "";
  const read = typeof hash === "string" ? readPasswordHash(hash, { weak: true }) : NO_TEXT;
  if (typeof hash === "string" && !("refused" in read)) {
    return { ...usable, password: hash, outdated: read.outdated };
  }
  if ("refused" in read && hash !== "") {
    log.warn("the password hash of a user cannot be used", {
      store,
      user: name,
      reason: read.refused,
    });
  }
  // No password matches, and the verification takes as long as any other.
  return { ...usable, password: decoyHash(), outdated: undefined, disabled: true };
}

const NO_TEXT = { refused: "the column password_hash does not contain text" };

/** Reads a list, or a string that contains one: as JSON, or as names separated by commas. */
function groupsIn(value: unknown): readonly unknown[] {
  if (value === undefined || value === null || value === "") return [];
  if (Array.isArray(value)) return value;
  if (typeof value !== "string")
    throw new StoreUnavailable("the column groups does not contain a list");
  if (!value.startsWith("[")) return value.split(",").map((group) => group.trim());
  try {
    const parsed: unknown = JSON.parse(value);
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // Not a list either.
  }
  throw new StoreUnavailable("the column groups does not contain a list");
}

function disabledIn(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  if (value === 0 || value === 1) return value === 1;
  throw new StoreUnavailable("the column disabled contains neither true nor false");
}
