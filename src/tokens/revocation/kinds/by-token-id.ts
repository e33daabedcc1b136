import type { Revocation } from "../../../core/revocation.ts";
import type { IdentityClaims } from "../../../core/request/identity.ts";
import { isName, type RevocationIndex, type RevocationKind } from "../revocation-kind.ts";

/** Single tokens by their `jti` (RFC 7519 §4.1.7). */
export const byTokenId: RevocationKind = {
  fileKey: "jti",
  read(value, refuse) {
    if (!Array.isArray(value)) {
      refuse([], "value", "must be a list of token ids");
      return [];
    }
    return value.flatMap((jti, place) => {
      if (isName(jti)) return [{ kind: "token" as const, name: jti }];
      refuse([place], "value", "must be the jti of a token, as text");
      return [];
    });
  },
  index: () => new TokenIds(),
};

/** Represents an infinite time. Seconds fit into a small integer of V8; Infinity does not. */
const NEVER = 0;

/** Stores a number for each `jti`. 100,000 take about 10 MB; as objects they would take twice as much. */
class TokenIds implements RevocationIndex {
  /** Seconds since the epoch, by `jti`. */
  readonly #ends = new Map<string, number>();

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

  covers({ tokenId }: IdentityClaims): boolean {
    return tokenId !== undefined && this.#ends.has(tokenId);
  }

  *entries(): Generator<Revocation> {
    for (const [name, ends] of this.#ends) {
      yield { kind: "token", name, until: ends === NEVER ? Infinity : ends * 1000 };
    }
  }

  remove({ name }: Revocation): void {
    this.#ends.delete(name);
  }
}
