import type { Log } from "../../../core/log.ts";
import { decoyHash } from "../../hashing/new-hash.ts";
import { readPasswordHash } from "../../hashing/password-hash.ts";
import { type HashSource, type UserRecord } from "../hash-store.ts";
import { isAskable } from "../remote/askable-name.ts";
import { soundGroups } from "../remote/sound-groups.ts";
import type { StoreAccess } from "../remote/store-access.ts";
import { StoreUnavailable } from "../remote/store-unavailable.ts";

/** A row that a query has given, by the names of its columns. */
export type Row = Readonly<Record<string, unknown>>;

export interface SqlSource {
  /** For the log. */
  readonly store: string;
  readonly access: StoreAccess;
  readonly log: Log;
  /** The rows of the configured query for a name, two at most. Ends when the time is over. */
  rows(username: string, leftMs: number): Promise<readonly Row[]>;
}

/** How many hashes are remembered, so that an unknown name costs as much as a known one. */
const REMEMBERED = 32;

/** The users of a database, each looked up when it logs in. */
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

/**
 * Checks the columns that a query gives.
 * @returns what is wrong with them; undefined if they are valid.
 */
export function columnsFault(names: readonly string[]): string | undefined {
  if (names.includes("password_hash")) return undefined;
  return "the query gives no column password_hash: write AS password_hash behind the right one";
}

/** @throws StoreUnavailable when the rows are not what a query for one user should give. */
function recordOf(
  rows: readonly Row[],
  username: string,
  { store, log }: Pick<SqlSource, "store" | "log">,
): UserRecord | undefined {
  const [row, another] = rows;
  if (row === undefined) return undefined;
  if (another !== undefined) throw new StoreUnavailable("the query gives several rows for a name");
  const fault = columnsFault(Object.keys(row));
  if (fault !== undefined) throw new StoreUnavailable(fault);
  const name = row["name"] ?? username;
  if (typeof name !== "string" || !isAskable(name)) {
    throw new StoreUnavailable("the column name holds something that is no name");
  }
  const { groups, leftOut } = soundGroups(groupsIn(row["groups"]));
  if (leftOut > 0) {
    log.warn("groups of a user were left out: they cannot be sent", {
      ...{ store, user: name, groups: leftOut },
    });
  }
  const usable = { name, groups, disabled: disabledIn(row["disabled"]) };
  const hash = row["password_hash"] ?? "";
  const read = typeof hash === "string" ? readPasswordHash(hash, { weak: true }) : NO_TEXT;
  if (typeof hash === "string" && !("refused" in read)) return { ...usable, password: hash };
  if ("refused" in read && hash !== "") {
    log.warn("the password hash of a user cannot be used", {
      ...{ store, user: name, reason: read.refused },
    });
  }
  // No password is right, and it takes as long as if one could be.
  return { ...usable, password: decoyHash(), disabled: true };
}

const NO_TEXT = { refused: "the column password_hash holds no text" };

/** A list, or a text that holds one: JSON, or names separated by commas. */
function groupsIn(value: unknown): readonly unknown[] {
  if (value === undefined || value === null || value === "") return [];
  if (Array.isArray(value)) return value;
  if (typeof value !== "string") throw new StoreUnavailable("the column groups holds no list");
  if (!value.startsWith("[")) return value.split(",").map((group) => group.trim());
  try {
    const parsed: unknown = JSON.parse(value);
    if (Array.isArray(parsed)) return parsed;
  } catch {
    // That is not a list either.
  }
  throw new StoreUnavailable("the column groups holds no list");
}

function disabledIn(value: unknown): boolean {
  if (value === undefined || value === null) return false;
  if (typeof value === "boolean") return value;
  if (value === 0 || value === 1) return value === 1;
  throw new StoreUnavailable("the column disabled holds neither true nor false");
}
