import type { Revocation } from "../../core/revocation.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";

/** An entry of the revocation file. It does not expire. */
export type Listed = Omit<Revocation, "until">;

/** Reports a problem at a position of the revocation file. */
type Refuse = (path: YamlPath, of: "key" | "value", message: string) => void;

/** All revocations of one kind. */
export interface RevocationIndex {
  readonly size: number;
  /** If there is already an entry of that name, keeps the wider of the two. */
  add(revocation: Revocation): void;
  /** Reports whether one of them revokes the token of this caller. */
  covers(caller: IdentityClaims): boolean;
  entries(): Iterable<Revocation>;
  /** Removes an entry whose tokens have expired. */
  remove(revocation: Revocation): void;
}

/** How the revocations of a kind are read and looked up. */
export interface RevocationKind {
  /** Reads the value of the key in the revocation file. */
  read(value: unknown, refuse: Refuse): Listed[];
  index(): RevocationIndex;
}

const CONTROL = /\p{Cc}/u;

/** Reports whether a value can be a `jti` or a subject. */
export function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !CONTROL.test(value);
}

const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/**
 * Parses an RFC 3339 time, with optional seconds. Returns milliseconds since the epoch, or undefined for anything else.
 */
export function timeFrom(value: unknown): number | undefined {
  if (typeof value !== "string" || !TIME.test(value)) return undefined;
  const time = Date.parse(value.replace(" ", "T"));
  return Number.isNaN(time) ? undefined : time;
}

export const TIME_EXPECTED = "must be a time with its zone, such as 2026-11-22T10:00:00Z";

/** Reports whether a token was issued before a time. A token without `iat` counts as issued before it. */
export function issuedBefore({ issuedAt }: IdentityClaims, beforeMs: number): boolean {
  return issuedAt === undefined || issuedAt * 1000 < beforeMs;
}
