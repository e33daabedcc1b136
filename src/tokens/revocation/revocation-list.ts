import {
  type Revocation,
  REVOCATION_KINDS,
  type RevocationKindName,
  type RevocationNews,
} from "../../core/revocation.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import { type RevocationIndex, revocationIndex } from "./revocation-kinds.ts";
import { callEach } from "../../lib/async/isolation.ts";

/** Maximum number of entries that one call of `forget` examines: about 2 ms at worst. */
const FORGET_AT_ONCE = 2_000;
/** Maximum number of revoked single tokens; they take about 25 MB in each thread. */
const MOST_TOKENS = 250_000;

/** Revocations by kind: those added one by one, or those of the file. */
class Entries {
  readonly #indexes: readonly RevocationIndex[] = REVOCATION_KINDS.map(revocationIndex);

  get size(): number {
    return this.#indexes.reduce((sum, index) => sum + index.size, 0);
  }

  of(kind: RevocationKindName): RevocationIndex | undefined {
    return this.#indexes[REVOCATION_KINDS.indexOf(kind)];
  }

  covering(caller: IdentityClaims): RevocationKindName | undefined {
    let kind = 0;
    for (const index of this.#indexes) {
      if (index.size > 0 && index.covers(caller)) return REVOCATION_KINDS[kind];
      kind += 1;
    }
    return undefined;
  }

  *all(): Generator<Revocation> {
    for (const index of this.#indexes) yield* index.entries();
  }
}

/** The revocations known to one thread: all of them, as the request path sees them. */
export class RevocationList {
  /** Changes with each change of the revocations. A plain field, since each request reads it. */
  version = 0;
  readonly #added = new Entries();
  #listed = new Entries();
  readonly #listeners = new Set<(news: RevocationNews) => void>();
  /** Where `forget` continues. */
  #forgetting: Iterator<Revocation> | undefined;

  get size(): number {
    return this.#added.size + this.#listed.size;
  }

  /** The number of revocations added one by one. */
  get addedSize(): number {
    return this.#added.size;
  }

  /** The number of revocations of one kind that were added one by one. */
  sizeOf(kind: RevocationKindName): number {
    return this.#added.of(kind)?.size ?? 0;
  }

  /** Whether there is no room for another single token. The caller must then revoke the subject instead. */
  get full(): boolean {
    return this.sizeOf("token") >= MOST_TOKENS;
  }

  /** Returns the kind of revocation that ends the token of a caller; undefined if none does. */
  covering(caller: IdentityClaims): RevocationKindName | undefined {
    return this.#added.covering(caller) ?? this.#listed.covering(caller);
  }

  take(news: RevocationNews): void {
    if ("added" in news) {
      for (const each of news.added) this.#added.of(each.kind)?.add(each);
    } else {
      this.#listed = new Entries();
      for (const each of news.listed) {
        this.#listed.of(each.kind)?.add({ ...each, until: Infinity });
      }
    }
    this.version += 1;
    callEach(this.#listeners, (listener) => listener(news));
  }

  /** Calls the listener in the same turn as each change. @returns a function that removes the listener. */
  onChange(listener: (news: RevocationNews) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** The revocations added one by one, which the journal keeps. */
  added(): Revocation[] {
    return [...this.#added.all()];
  }

  /** The changes that make another list equal to this one. */
  news(): RevocationNews[] {
    return [
      { added: this.added() },
      { listed: Array.from(this.#listed.all(), ({ until: _, ...listed }) => listed) },
    ];
  }

  /** Forgets revocations whose tokens have expired. Examines some at a time, so it must be called repeatedly. */
  forget(nowMs: number): void {
    for (let looked = 0; looked < FORGET_AT_ONCE; looked += 1) {
      this.#forgetting ??= this.#added.all();
      const { value: entry, done } = this.#forgetting.next();
      if (done === true) {
        this.#forgetting = undefined;
        return;
      }
      if (entry.until <= nowMs) this.#added.of(entry.kind)?.remove(entry);
    }
  }
}
