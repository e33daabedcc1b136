import type { Revocation } from "../../core/revocation.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";

/** An entry of the revocation file; it has no end. */
export type Listed = Omit<Revocation, "until">;

/** Reports a problem at a position of the revocation file. */
type Refuse = (path: YamlPath, of: "key" | "value", message: string) => void;

/** All revocations of one kind. */
export interface RevocationIndex {
  readonly size: number;
  /** If there is already one, keeps the wider of the two. */
  add(revocation: Revocation): void;
  /** Whether one of them ends the token of this caller. */
  covers(caller: IdentityClaims): boolean;
  entries(): Iterable<Revocation>;
  /** Removes an entry whose tokens have ended. */
  remove(revocation: Revocation): void;
}

/** A kind of revocation: how the revocation file writes it, and how it is looked up. */
export interface RevocationKind {
  /** The key of the revocation file. */
  readonly fileKey: string;
  /** Reads the value of the key. */
  read(value: unknown, refuse: Refuse): Listed[];
  index(): RevocationIndex;
}

const CONTROL = /\p{Cc}/u;

/** Whether a text can be a `jti` or a subject. */
export function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !CONTROL.test(value);
}

const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** A time of RFC 3339 in milliseconds since the epoch; undefined for anything else. */
export function timeFrom(value: unknown): number | undefined {
  if (typeof value !== "string" || !TIME.test(value)) return undefined;
  const time = Date.parse(value.replace(" ", "T"));
  return Number.isNaN(time) ? undefined : time;
}

export const TIME_EXPECTED = "must be a time with its zone, such as 2026-11-22T10:00:00Z";

/** Whether a token was issued before a time. A token without `iat` counts as issued before. */
export function issuedBefore({ issuedAt }: IdentityClaims, beforeMs: number): boolean {
  return issuedAt === undefined || issuedAt * 1000 < beforeMs;
}
