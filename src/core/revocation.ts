import { keysOf } from "../lib/keys-of.ts";
import type { ClaimValue, IdentityClaims } from "./request/identity.ts";

/** The form of the revocations of one kind. */
interface RevocationForm {
  /** The key in the revocation file; undefined if operators cannot name such tokens. */
  readonly fileKey?: string;
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
  /** The value of the flag and what it does, for the help of `token revoke`; undefined if operators cannot name such tokens. */
  readonly help?: readonly [value: string, line: string];
  /** Returns the name of a caller's token. */
  nameOf(caller: IdentityClaims): ClaimValue | undefined;
  /** The claim with the name, unless every identity has it. */
  readonly claim?: string;
}

/** Returns the row member for what a sign-in at a provider puts into our tokens. */
function byClaim(claim: string, word: string, plural: string): NamedTokens {
  return { word, plural, claim, nameOf: ({ claims }) => claims?.get(claim) };
}

/**
 * The kinds of revocations, one row each: one token, the tokens of a subject, of a session or an account at a sign-in provider,
 * or all tokens.
 */
const FORMS = {
  token: {
    fileKey: "jti",
    refusal: "its jti is revoked",
    dated: false,
    named: {
      word: "jti",
      plural: "token ids",
      help: ["ID", "the token with this jti; may be repeated"],
      nameOf: ({ tokenId }) => tokenId,
    },
  },
  subject: {
    fileKey: "subjects",
    dated: true,
    refusal: "it was issued before the time up to which its subject's tokens are revoked",
    named: {
      word: "subject",
      plural: "subjects",
      help: ["NAME", "the tokens of this subject, issued before --before or until now; repeatable"],
      nameOf: ({ subject }) => subject,
    },
  },
  session: {
    refusal: "its session has ended at the sign-in provider",
    dated: true,
    named: byClaim("sid", "session", "sessions"),
  },
  account: {
    dated: true,
    refusal: "its account was signed out at the sign-in provider",
    named: byClaim("idp_sub", "account", "accounts"),
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
export const REVOCATION_KEYS = REVOCATION_KINDS.flatMap(
  (kind) => REVOCATION_FORMS[kind].fileKey ?? [],
);

/** The kinds by which operators name something. */
export const NAMED_REVOCATIONS = REVOCATION_KINDS.flatMap((kind) => {
  const { named, dated } = REVOCATION_FORMS[kind];
  return named?.help === undefined ? [] : [{ kind, dated, ...named, help: named.help }];
});

/** The claims by which tokens can be ended. */
export const REVOKING_CLAIMS = REVOCATION_KINDS.flatMap(
  (kind) => REVOCATION_FORMS[kind].named?.claim ?? [],
);

/** Returns the parameters of `/-/revoked`: all that decides whether a token is revoked. */
export function revocationQuery(caller: IdentityClaims): URLSearchParams {
  const { subject, issuer, tokenId, issuedAt, claims } = caller;
  const query = new URLSearchParams({ subject, issuer });
  if (tokenId !== undefined) query.set("jti", tokenId);
  if (issuedAt !== undefined) query.set("iat", String(issuedAt));
  for (const name of REVOKING_CLAIMS) {
    const value = claims?.get(name);
    if (value !== undefined) query.set(name, String(value));
  }
  return query;
}

/** Returns the caller whom these parameters describe; undefined if they are invalid. */
export function callerIn(query: URLSearchParams): IdentityClaims | undefined {
  const { subject, issuer, jti: tokenId, iat, ...claims } = Object.fromEntries(query);
  const issuedAt = iat === undefined ? undefined : Number(iat);
  const known = Object.keys(claims).every((name) => REVOKING_CLAIMS.includes(name));
  const isDate = issuedAt === undefined || Number.isFinite(issuedAt);
  if (!known || !isDate || !subject || !issuer) return undefined;
  const unused = { groups: [], expiresAt: 0, acceptedUntil: 0 };
  const named = new Map(Object.entries(claims));
  return { ...unused, subject, issuer, issuedAt, tokenId, claims: named };
}

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
