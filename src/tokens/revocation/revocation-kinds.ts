import {
  type NamedTokens,
  type Revocation,
  REVOCATION_FORMS,
  type RevocationKindName,
} from "../../core/revocation.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import { isJsonObject } from "../../lib/text/strict-json.ts";
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
interface RevocationKind {
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
function issuedBefore({ issuedAt }: IdentityClaims, beforeMs: number): boolean {
  return issuedAt === undefined || issuedAt * 1000 < beforeMs;
}

/** Returns how the revocations of a kind are read and looked up. */
export function revocationKind(kind: RevocationKindName): RevocationKind {
  const { named, dated } = REVOCATION_FORMS[kind];
  if (named === undefined) return everythingBefore(kind);
  return dated ? datedNames(kind, named) : tokenNames(kind, named);
}

/** All tokens with a name: single ones by their `jti` (RFC 7519 §4.1.7). */
function tokenNames(kind: RevocationKindName, named: NamedTokens): RevocationKind {
  return {
    read(value, refuse) {
      if (!Array.isArray(value)) {
        refuse([], "value", `must be a list of ${named.plural}`);
        return [];
      }
      return value.flatMap((name, place) => {
        if (isName(name)) return [{ kind, name }];
        refuse([place], "value", `must be the ${named.word} of a token, as text`);
        return [];
      });
    },
    index: () => new TokenNames(kind, named),
  };
}

/** Represents an infinite time. Seconds fit into a small integer of V8; Infinity does not. */
const NEVER = 0;

/** Stores a number for each name. 100,000 take about 10 MB; as objects they would take twice as much. */
class TokenNames implements RevocationIndex {
  readonly #kind: RevocationKindName;
  readonly #nameOf: NamedTokens["nameOf"];
  /** Seconds since the epoch, by name. */
  readonly #ends = new Map<string, number>();

  constructor(kind: RevocationKindName, { nameOf }: NamedTokens) {
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

/** The tokens with a name, such as a subject, that were issued before a time. */
function datedNames(kind: RevocationKindName, named: NamedTokens): RevocationKind {
  return {
    read(value, refuse) {
      if (!isJsonObject(value)) {
        refuse([], "value", `must name ${named.plural}, each with a time`);
        return [];
      }
      return Object.entries(value).flatMap(([name, written]): Listed[] => {
        const before = timeFrom(written);
        if (!isName(name)) refuse([name], "key", `must be the name of a ${named.word}`);
        else if (before === undefined) refuse([name], "value", TIME_EXPECTED);
        else return [{ kind, name, before }];
        return [];
      });
    },
    index: () => new DatedNames(named),
  };
}

type DatedEntry = Revocation & { readonly before: number };

class DatedNames implements RevocationIndex {
  readonly #nameOf: NamedTokens["nameOf"];
  /** Revocations by name: one for the tokens of every issuer, and one for each single issuer. */
  readonly #entries = new Map<string, readonly DatedEntry[]>();
  #size = 0;

  constructor({ nameOf }: Pick<NamedTokens, "nameOf">) {
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

/** All tokens that were issued before a time, by any issuer. */
function everythingBefore(kind: RevocationKindName): RevocationKind {
  return {
    read(value, refuse) {
      const before = timeFrom(value);
      if (before !== undefined) return [{ kind, name: "", before }];
      refuse([], "value", TIME_EXPECTED);
      return [];
    },
    index: () => new DatedNames({ nameOf: () => "" }),
  };
}
