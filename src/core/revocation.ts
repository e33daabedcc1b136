import type { IdentityClaims } from "./request/identity.ts";

/** The scope of a revocation: one token, the tokens of a subject, or all tokens. */
export const REVOCATION_KINDS = ["token", "subject", "everything"] as const;
export type RevocationKindName = (typeof REVOCATION_KINDS)[number];

/** The form of the revocations of one kind. */
interface RevocationForm {
  /** The operator's word for what `name` identifies; undefined if there is no `name`. */
  readonly names: string | undefined;
  /** Whether they end only tokens that were issued before a certain time. */
  readonly dated: boolean;
}

export const REVOCATION_FORMS: Readonly<Record<RevocationKindName, RevocationForm>> = {
  token: { names: "jti", dated: false },
  subject: { names: "subject", dated: true },
  everything: { names: undefined, dated: true },
};

/** Ends tokens before they expire. Plain data: it is posted to other threads and written to the journal. */
export interface Revocation {
  readonly kind: RevocationKindName;
  /** The `jti` of the token, or the subject; empty for `everything`. */
  readonly name: string;
  /** The issuer of the tokens; if omitted, tokens of every issuer. */
  readonly issuer?: string;
  /** Ends tokens issued before this time, in milliseconds since the epoch; omitted for a kind that is not dated. */
  readonly before?: number;
  /** When the last of these tokens has expired, in milliseconds since the epoch. */
  readonly until: number;
}

/** A change of the revocations. */
export type RevocationNews =
  /** These were added. */
  | { readonly added: readonly Revocation[] }
  /** The revocation file now lists exactly these; they do not expire. */
  | { readonly listed: readonly Omit<Revocation, "until">[] };

/** All revocations, as the request path sees them. */
export interface Revocations {
  /** Changes with each change of the revocations. */
  readonly version: number;
  /** Returns the kind of revocation that ends the token of a caller; undefined if none does. */
  covering(caller: IdentityClaims): RevocationKindName | undefined;
  /** Calls the listener in the same turn as each change. @returns a function that removes the listener. */
  onChange(listener: (news: RevocationNews) => void): () => void;
}

export const NOTHING_REVOKED: Revocations = {
  version: 0,
  covering: () => undefined,
  onChange: () => () => undefined,
};

/**
 * Publishes revocations. When it resolves, all threads apply them.
 *
 * @returns whether they will survive a restart, too.
 */
export type PublishRevocations = (revocations: readonly Revocation[]) => Promise<boolean>;
