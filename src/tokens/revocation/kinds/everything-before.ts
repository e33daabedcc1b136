import type { Revocation, RevocationKindName } from "../../../core/revocation.ts";
import type { IdentityClaims } from "../../../core/request/identity.ts";
import {
  issuedBefore,
  type RevocationIndex,
  type RevocationKind,
  TIME_EXPECTED,
  timeFrom,
} from "../revocation-kind.ts";

/** All tokens that were issued before a time, by any issuer. */
export function everythingBefore(kind: RevocationKindName): RevocationKind {
  return {
    read(value, refuse) {
      const before = timeFrom(value);
      if (before !== undefined) return [{ kind, name: "", before }];
      refuse([], "value", TIME_EXPECTED);
      return [];
    },
    index: () => new Everything(),
  };
}

class Everything implements RevocationIndex {
  #entry: Revocation | undefined;

  get size(): number {
    return this.#entry === undefined ? 0 : 1;
  }

  add(revocation: Revocation): void {
    const { before = Infinity, until } = revocation;
    this.#entry = {
      ...revocation,
      before: Math.max(before, this.#entry?.before ?? -Infinity),
      until: Math.max(until, this.#entry?.until ?? -Infinity),
    };
  }

  covers(caller: IdentityClaims): boolean {
    return this.#entry !== undefined && issuedBefore(caller, this.#entry.before ?? Infinity);
  }

  *entries(): Generator<Revocation> {
    if (this.#entry !== undefined) yield this.#entry;
  }

  remove(): void {
    this.#entry = undefined;
  }
}
