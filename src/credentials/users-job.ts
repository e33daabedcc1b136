import type { ConfigProblem } from "../core/config-problem.ts";
import type { UserRecord } from "../core/user-store.ts";

/** What a thread that reads users is given, and what it answers. */
export interface UsersJob {
  readonly bytes: Uint8Array;
  /** The name to tell in problems. */
  readonly file: string;
}

export type UsersAnswer =
  | { readonly users: ReadonlyMap<string, UserRecord> }
  | { readonly problems: readonly ConfigProblem[] };
