import type { Configuration } from "../config/configuration.ts";
import type { Configured, SnapshotFiles } from "../config/snapshot.ts";
import { BoundToken } from "../core/request/bound-token.ts";
import type { IdentityClaims } from "../core/request/identity.ts";
import type { TokenVerifier } from "../tokens/verify/verifier.ts";
import {
  NAMED_REVOCATIONS,
  type PublishRevocations,
  type Revocation,
  REVOCATION_FORMS,
  type RevocationKindName,
} from "../core/revocation.ts";
import type { Log } from "../core/log.ts";
import type { Reloaded } from "../core/status.ts";
import type { LogOut } from "../server/endpoints/logout.ts";
import type { Clock } from "../lib/clock.ts";
import { orList } from "../lib/text/printable.ts";
import type { RevocationQuery, RevocationResult } from "../server/admin/revoke-page.ts";
import { readJournal } from "../tokens/revocation/journal.ts";
import { isName, TIME_EXPECTED, timeFrom } from "../tokens/revocation/revocation-kinds.ts";
import {
  readRevocationFile,
  RevocationService,
  type RevocationServiceOptions,
} from "../tokens/revocation/revocation-service.ts";
import { RevocationList } from "../tokens/revocation/revocation-list.ts";
import { revocationFileIn } from "./from-files.ts";
import { verifyToken } from "./explanation/explained-token.ts";

/** Assumed maximum lifetime of a token, in milliseconds: the largest value of `tokens.lifetime`. */
const LONGEST_LIFE_MS = 366 * 24 * 3_600_000;

/** Returns when the last token issued before a time has expired, in milliseconds since the epoch. */
function longestEnd(beforeMs: number, nowMs: number): number {
  return Math.max(beforeMs, nowMs) + LONGEST_LIFE_MS;
}

/** The limits of a revocation of a dated kind; times in milliseconds since the epoch. */
interface Dates {
  /** The issuer of the tokens; undefined for every issuer. */
  readonly issuer?: string | undefined;
  /** Revokes tokens issued before this time; undefined for all issued until now. */
  readonly before?: number | undefined;
  readonly nowMs: number;
}

/** Returns the revocation of a name. Its tokens are unknown, so the revocation lasts as long as a token can live. */
function revocationNaming(
  kind: RevocationKindName,
  name: string,
  { issuer, before, nowMs }: Dates,
): Revocation {
  if (!REVOCATION_FORMS[kind].dated) return { kind, name, until: longestEnd(nowMs, nowMs) };
  // `iat` counts whole seconds, so the current second is included.
  const beforeMs = before ?? (Math.floor(nowMs / 1000) + 1) * 1000;
  const whose = issuer === undefined ? {} : { issuer };
  return { kind, name, ...whose, before: beforeMs, until: longestEnd(beforeMs, nowMs) };
}

/** Revokes the tokens of a subject that were issued until now. */
export function subjectUntilNow(
  subject: string,
  issuer: string | undefined,
  nowMs: number,
): Revocation {
  return revocationNaming("subject", subject, { issuer, nowMs });
}

/**
 * Revokes the token of a caller. If it has no `jti`, or there is no room for single tokens, revokes all tokens issued
 * to its subject until now.
 */
export function tokenOf(caller: IdentityClaims, full: boolean, nowMs: number): Revocation {
  const { tokenId, subject, issuer, acceptedUntil } = caller;
  if (tokenId === undefined || full) return subjectUntilNow(subject, issuer, nowMs);
  return { kind: "token", name: tokenId, until: acceptedUntil };
}

/** Opens the revocations of a snapshot. @throws ConfigError if the journal or the file cannot be used. */
export function openRevocations(
  { configuration, files }: Configured,
  { clock, log, share }: Pick<RevocationServiceOptions, "clock" | "log" | "share">,
  reloaded: Reloaded,
): Promise<RevocationService> {
  const { journal } = configuration.tokens.revocation;
  const file = revocationFileIn(configuration, files);
  return RevocationService.open({ journal, file, share, reloaded, clock, log });
}

/**
 * Reads the revocations of the file and of the journal.
 *
 * @throws ConfigError if the file or the journal cannot be used.
 */
export function revokedBy(configuration: Configuration, files: SnapshotFiles): RevocationList {
  const list = new RevocationList();
  const file = revocationFileIn(configuration, files);
  const { journal } = configuration.tokens.revocation;
  if (file !== undefined) list.take({ listed: readRevocationFile(file) });
  if (journal !== undefined) list.take({ added: readJournal(journal).revocations });
  return list;
}

interface Revoking {
  readonly revocations: RevocationList;
  readonly publish: PublishRevocations;
  readonly clock: Clock;
  readonly log: Log;
}

/** Describes a revocation for the log, by the words that revoke the same: `jti`, `subject`, `issuer`, `before`. */
function logged({ kind, name, issuer, before }: Revocation): Readonly<Record<string, string>> {
  const word = REVOCATION_FORMS[kind].named?.word;
  return {
    ...(word === undefined ? {} : { [word]: name }),
    ...(issuer === undefined ? {} : { issuer }),
    ...(before === undefined ? {} : { before: new Date(before).toISOString() }),
  };
}

/** The maximum number of revocations that one line of the log lists. */
const MOST_LISTED = 100;

/** Ends the token of a caller who logs out. */
export function logoutWith({ revocations: list, publish, clock, log }: Revoking): LogOut {
  return async (caller, { id, client, connection }) => {
    // The token is already revoked.
    if (list.covering(caller) !== undefined) return;
    const revocation = tokenOf(caller, list.full, clock.now());
    const kept = await publish([revocation]);
    log.info("a caller logged out", {
      id,
      by: client,
      certificate: connection.clientCertificate?.subject || undefined,
      subject: caller.subject,
      revoked: [logged(revocation)],
      kept,
    });
  };
}

/**
 * Revokes the tokens of users whom `Logins` reports as removed or disabled. Users who are disabled at start are found
 * again at every start, so they are not written to the journal.
 */
export function departedUsers(
  configuration: () => Configuration,
  service: Pick<RevocationService, "publish" | "arrived">,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): (names: readonly string[], atStart: boolean) => void {
  return (names, atStart) => {
    const { issuer, revocation } = configuration().tokens;
    if (!revocation.users) return;
    const now = clock.now();
    const revocations = names.map((name) => subjectUntilNow(name, issuer, now));
    if (atStart) {
      service.arrived(revocations);
      return;
    }
    void service.publish(revocations).then((kept) => {
      log.info("the tokens of users who are gone were revoked", {
        users: names.length,
        subjects: names.slice(0, MOST_LISTED),
        kept,
      });
    });
  };
}

/** Revokes the tokens that an operator names. @param by the address of the operator. */
export async function revokeNamed(
  { revocations: list, publish, clock, log }: Revoking,
  tokens: Pick<TokenVerifier, "verify">,
  query: RevocationQuery,
  by: string,
): Promise<RevocationResult> {
  const named = await revocationsIn(query, tokens, list, clock.now());
  if (typeof named === "string") return { refused: named };
  const kept = await publish(named);
  log.info("tokens were revoked", { by, revoked: named.slice(0, MOST_LISTED).map(logged), kept });
  return { revoked: named, kept };
}

/** The things that an operator can name instead of a token: `a jti`, `a subject`. */
const NAMEABLE = NAMED_REVOCATIONS.map(({ word }) => `a ${word}`);
/** Those of which a time and an issuer say more. */
const DATED = orList(NAMED_REVOCATIONS.filter(({ dated }) => dated).map(({ word }) => word));

/** @returns the revocations that the query names, or why it is invalid. */
async function revocationsIn(
  { named, issuer, before: written, token }: RevocationQuery,
  tokens: Pick<TokenVerifier, "verify">,
  list: RevocationList,
  nowMs: number,
): Promise<readonly Revocation[] | string> {
  const before = timeFrom(written);
  if (written !== undefined && before === undefined) return `before ${TIME_EXPECTED}`;
  if (named.size + (token === undefined ? 0 : 1) > 1) {
    return `name a token, ${orList(NAMEABLE)}, and only one of them`;
  }
  const [[kind, names] = [undefined, []]] = named;
  const dated = kind !== undefined && REVOCATION_FORMS[kind].dated;
  if (issuer !== undefined && !dated) return `issuer needs ${DATED}`;
  if (issuer !== undefined && !isName(issuer)) {
    return "an issuer must be text without control characters";
  }
  if (before !== undefined && !dated && (token !== undefined || kind !== undefined)) {
    return `before needs ${DATED}, or must be the only parameter`;
  }
  if (token !== undefined) return revocationOf(token, tokens, list, nowMs);
  if (kind !== undefined) {
    if (!names.every(isName)) {
      return `a ${REVOCATION_FORMS[kind].named?.word} must be text without control characters`;
    }
    return names.map((name) => revocationNaming(kind, name, { issuer, before, nowMs }));
  }
  if (before === undefined) return `name a token, ${NAMEABLE.join(", ")}, or a time with before`;
  return [{ kind: "everything", name: "", before, until: longestEnd(before, nowMs) }];
}

async function revocationOf(
  token: string,
  tokens: Pick<TokenVerifier, "verify">,
  list: RevocationList,
  nowMs: number,
): Promise<readonly Revocation[] | string> {
  const verdict = await verifyToken(token, tokens);
  if ("reason" in verdict) {
    if (verdict.reason === "revoked") return [];
    return `the token is not accepted anyway (${verdict.reason})`;
  }
  const caller = verdict instanceof BoundToken ? verdict.claims : verdict;
  if (caller.tokenId === undefined) return "the token has no jti: revoke its subject";
  return [tokenOf(caller, list.full, nowMs)];
}
