import { keysOf } from "../lib/keys-of.ts";
import type { ClaimValue, IdentityClaims } from "./request/identity.ts";

/** The form of the revocations of one kind. */
interface RevocationForm {
  /** The key in the revocation file. */
  readonly fileKey: string;
  /** Why a token is refused, for `explain`. */
  readonly refusal: string;
  /** Whether they end only tokens that were issued before a certain time. */
  readonly dated: boolean;
  /** The tokens that they name; undefined if they end the tokens of everyone. */
  readonly named?: NamedTokens;
}

export interface NamedTokens {
  /** The operator's word for a name, the parameter of `/-/revoke` and the flag of `token revoke`. */
  readonly word: string;
  readonly plural: string;
  /** Returns the name of a caller's token. */
  nameOf(caller: IdentityClaims): ClaimValue | undefined;
  /** The claim with the name, unless every identity has it. */
  readonly claim?: string;
}

/** The kinds of revocations, one row each: one token, the tokens of a subject, or all tokens. */
const FORMS = {
  token: {
    fileKey: "jti",
    refusal: "its jti is revoked",
    dated: false,
    named: { word: "jti", plural: "token ids", nameOf: ({ tokenId }) => tokenId },
  },
  subject: {
    fileKey: "subjects",
    dated: true,
    refusal: "it was issued before the time up to which its subject's tokens are revoked",
    named: { word: "subject", plural: "subjects", nameOf: ({ subject }) => subject },
  },
  everything: {
    fileKey: "before",
    dated: true,
    refusal: "it was issued before the time up to which all tokens are revoked",
  },
} satisfies Readonly<Record<string, RevocationForm>>;

export type RevocationKindName = keyof typeof FORMS;

export const REVOCATION_FORMS: Readonly<Record<RevocationKindName, RevocationForm>> = FORMS;

export const REVOCATION_KINDS: readonly RevocationKindName[] = keysOf(FORMS);

/** The keys of the revocation file. */
export const REVOCATION_KEYS = REVOCATION_KINDS.map((kind) => REVOCATION_FORMS[kind].fileKey);

/** The kinds that name something. */
export const NAMED_REVOCATIONS = REVOCATION_KINDS.flatMap((kind) => {
  const { named, dated } = REVOCATION_FORMS[kind];
  return named === undefined ? [] : [{ kind, dated, ...named }];
});

/** Ends tokens before they expire. Plain data: it is posted to other threads and written to the journal. */
export interface Revocation {
  readonly kind: RevocationKindName;
  /** The name of the tokens; empty for a kind that names nothing. */
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

/**
 * Publishes revocations. When it resolves, all threads apply them.
 *
 * @returns whether they will survive a restart, too.
 */
export type PublishRevocations = (revocations: readonly Revocation[]) => Promise<boolean>;
