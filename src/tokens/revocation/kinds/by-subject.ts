import { isJsonObject } from "../../../lib/text/strict-json.ts";
import type { Revocation } from "../../../core/revocation.ts";
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

/** The tokens of a subject that were issued before a time. */
export const bySubject: RevocationKind = {
  fileKey: "subjects",
  read(value, refuse) {
    if (!isJsonObject(value)) {
      refuse([], "value", "must name subjects, each with a time");
      return [];
    }
    return Object.entries(value).flatMap(([name, written]): Listed[] => {
      const before = timeFrom(written);
      if (!isName(name)) refuse([name], "key", "must be the name of a subject");
      else if (before === undefined) refuse([name], "value", TIME_EXPECTED);
      else return [{ kind: "subject", name, before }];
      return [];
    });
  },
  index: () => new Subjects(),
};

type SubjectEntry = Revocation & { readonly before: number };

class Subjects implements RevocationIndex {
  /** Revocations by subject: one for the tokens of every issuer, and one for each single issuer. */
  readonly #entries = new Map<string, readonly SubjectEntry[]>();
  #size = 0;

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
    const entries = this.#entries.get(caller.subject);
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
