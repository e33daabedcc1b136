import type { IdentityClaims } from "./request/identity.ts";

/** What a revocation ends: one token, the tokens of a subject, or all. */
export const REVOCATION_KINDS = ["token", "subject", "everything"] as const;
export type RevocationKindName = (typeof REVOCATION_KINDS)[number];

/** What the revocations of one kind say. */
interface RevocationForm {
  /** How an operator calls what they name; undefined if they name nothing. */
  readonly names: string | undefined;
  /** Whether they end only tokens that were issued before a time. */
  readonly dated: boolean;
}

export const REVOCATION_FORMS: Readonly<Record<RevocationKindName, RevocationForm>> = {
  token: { names: "jti", dated: false },
  subject: { names: "subject", dated: true },
  everything: { names: undefined, dated: true },
};

/** Ends tokens before their time. Plain data: it is posted to other threads and written to the journal. */
export interface Revocation {
  readonly kind: RevocationKindName;
  /** The `jti` of the token, or the subject; empty for a kind that names nothing. */
  readonly name: string;
  /** Whose tokens; left out, those of every issuer. */
  readonly issuer?: string;
  /** Tokens issued before this end, milliseconds since the epoch; left out for a kind that is not dated. */
  readonly before?: number;
  /** When the last token that it ends has ended by itself, milliseconds since the epoch. */
  readonly until: number;
}

/** A change of what is revoked. */
export type RevocationNews =
  /** These came. */
  | { readonly added: readonly Revocation[] }
  /** The revocation file lists these now, and no others; they have no end. */
  | { readonly listed: readonly Omit<Revocation, "until">[] };

/** What is revoked, as the request path sees it. */
export interface Revocations {
  /** Another number after each change. */
  readonly version: number;
  /** Which kind of revocation ends the token of a caller; undefined when none does. */
  covering(caller: IdentityClaims): RevocationKindName | undefined;
  /** Calls back in the same turn as each change. @returns what ends that. */
  onChange(listener: (news: RevocationNews) => void): () => void;
}

export const NOTHING_REVOKED: Revocations = {
  version: 0,
  covering: () => undefined,
  onChange: () => () => undefined,
};

/**
 * Publishes revocations: they are in force in all threads when this resolves. @returns whether they are kept for the next
 * start, too.
 */
export type PublishRevocations = (revocations: readonly Revocation[]) => Promise<boolean>;
