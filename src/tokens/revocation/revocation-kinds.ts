import {
  type NamedTokens,
  type Revocation,
  REVOCATION_FORMS,
  type RevocationKindName,
} from "../../core/revocation.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";

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

const CONTROL = /\p{Cc}/u;

/** Reports whether a value can be a `jti` or a subject. */
export function isName(value: unknown): value is string {
  return typeof value === "string" && value !== "" && !CONTROL.test(value);
}

const TIME = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d\d:\d\d)$/;

/** Returns an RFC 3339 time, with optional seconds, in milliseconds since the epoch; undefined for anything else. */
export function timeFrom(value: unknown): number | undefined {
  if (typeof value !== "string" || !TIME.test(value)) return undefined;
  const time = Date.parse(value.replace(" ", "T"));
  return Number.isNaN(time) ? undefined : time;
}

export const TIME_EXPECTED = "must be a time with its zone, such as 2026-11-22T10:00:00Z";

/** Reports whether a token was issued before a time. A token without `iat` counts as issued before it. */
function issuedBefore({ issuedAt }: IdentityClaims, beforeMs: number): boolean {
  return issuedAt === undefined || issuedAt * 1000 < beforeMs;
}

/** Creates an index for the revocations of a kind. */
export function revocationIndex(kind: RevocationKindName): RevocationIndex {
  const { named, dated } = REVOCATION_FORMS[kind];
  // All tokens that were issued before a time have one name.
  if (named === undefined) return new DatedNames(() => "");
  return dated ? new DatedNames(named.nameOf) : new TokenNames(kind, named.nameOf);
}

/** Represents an infinite time. Seconds fit into a small integer of V8; Infinity does not. */
const NEVER = 0;

/** All tokens with a name: single ones by their `jti` (RFC 7519 §4.1.7). Stores a number for each name. 100,000 take about 10 MB; as objects they would take twice as much. */
class TokenNames implements RevocationIndex {
  readonly #kind: RevocationKindName;
  readonly #nameOf: NamedTokens["nameOf"];
  /** Seconds since the epoch, by name. */
  readonly #ends = new Map<string, number>();

  constructor(kind: RevocationKindName, nameOf: NamedTokens["nameOf"]) {
    this.#kind = kind;
    this.#nameOf = nameOf;
  }

  get size(): number {
    return this.#ends.size;
  }

  add({ name, until }: Revocation): void {
    const ends = until === Infinity ? NEVER : Math.ceil(until / 1000);
    const before = this.#ends.get(name);
    if (before === undefined || (before !== NEVER && (ends === NEVER || ends > before))) {
      this.#ends.set(name, ends);
    }
  }

  covers(caller: IdentityClaims): boolean {
    const name = this.#nameOf(caller);
    return typeof name === "string" && this.#ends.has(name);
  }

  *entries(): Generator<Revocation> {
    for (const [name, ends] of this.#ends) {
      yield { kind: this.#kind, name, until: ends === NEVER ? Infinity : ends * 1000 };
    }
  }

  remove({ name }: Revocation): void {
    this.#ends.delete(name);
  }
}

type DatedEntry = Revocation & { readonly before: number };

/** The tokens with a name, such as a subject, that were issued before a time. */
class DatedNames implements RevocationIndex {
  readonly #nameOf: NamedTokens["nameOf"];
  /** Revocations by name: one for the tokens of every issuer, and one for each single issuer. */
  readonly #entries = new Map<string, readonly DatedEntry[]>();
  #size = 0;

  constructor(nameOf: NamedTokens["nameOf"]) {
    this.#nameOf = nameOf;
  }

  get size(): number {
    return this.#size;
  }

  add(revocation: Revocation): void {
    const { name, issuer, before = Infinity, until } = revocation;
    const all = this.#entries.get(name) ?? [];
    const known = all.find((entry) => entry.issuer === issuer);
    const entry = {
      ...revocation,
      before: Math.max(before, known?.before ?? -Infinity),
      until: Math.max(until, known?.until ?? -Infinity),
    };
    this.#entries.set(name, [...all.filter((each) => each !== known), entry]);
    if (known === undefined) this.#size += 1;
  }

  covers(caller: IdentityClaims): boolean {
    const name = this.#nameOf(caller);
    const entries = typeof name === "string" ? this.#entries.get(name) : undefined;
    if (entries === undefined) return false;
    for (const { issuer, before } of entries) {
      const theirs = issuer === undefined || issuer === caller.issuer;
      if (theirs && issuedBefore(caller, before)) return true;
    }
    return false;
  }

  *entries(): Generator<Revocation> {
    for (const entries of this.#entries.values()) yield* entries;
  }

  remove({ name, issuer }: Revocation): void {
    const all = this.#entries.get(name) ?? [];
    const left = all.filter((entry) => entry.issuer !== issuer);
    this.#size -= all.length - left.length;
    if (left.length === 0) this.#entries.delete(name);
    else this.#entries.set(name, left);
  }
}
