import { isJsonObject } from "../../../lib/text/strict-json.ts";
import type { NamedTokens, Revocation, RevocationKindName } from "../../../core/revocation.ts";
import type { IdentityClaims } from "../../../core/request/identity.ts";
import {
  isName,
  issuedBefore,
  type Listed,
  type RevocationIndex,
  type RevocationKind,
  TIME_EXPECTED,
  timeFrom,
} from "../revocation-kind.ts";

/** The tokens with a name, such as a subject, that were issued before a time. */
export function datedNames(kind: RevocationKindName, named: NamedTokens): RevocationKind {
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

  constructor({ nameOf }: NamedTokens) {
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
