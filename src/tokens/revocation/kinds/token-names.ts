import type { NamedTokens, Revocation, RevocationKindName } from "../../../core/revocation.ts";
import type { IdentityClaims } from "../../../core/request/identity.ts";
import { isName, type RevocationIndex, type RevocationKind } from "../revocation-kind.ts";

/** All tokens with a name: single ones by their `jti` (RFC 7519 §4.1.7). */
export function tokenNames(kind: RevocationKindName, named: NamedTokens): RevocationKind {
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
