/**
 * The format of events that replicas exchange. Never trust an event: anyone who can write to the server may have sent
 * it.
 */
import { type Revocation, REVOCATION_FORMS, REVOCATION_KINDS } from "../core/revocation.ts";
import type { AttemptEnd } from "../core/shared-parts.ts";
import { isJsonObject, jsonObjectIn } from "../lib/text/strict-json.ts";

/** The maximum length of an event in characters; a name of a thousand characters fits. */
const LONGEST = 16 * 1024;
const DIGEST = /^[\w-]{43}$/;
const CONTROL = /\p{Cc}/u;
/** The longest lifetime of a token, and so of a revocation, in milliseconds. */
const LONGEST_LIFE_MS = 2 * 366 * 24 * 3_600_000;

type SharedEvent = { readonly attempt: AttemptEnd } | { readonly revocation: Revocation };

/** Returns the same text for equal revocations. Rounds the end up to whole seconds, as everywhere in a replica. */
export function writeRevocation({ kind, name, issuer, before, until }: Revocation): string {
  return JSON.stringify({ revocation: { kind, name, issuer, before, until: endOf(until) } });
}

/** Returns when a revocation ends, in milliseconds since the epoch, rounded up to a whole second. */
export function endOf(until: number): number {
  return Math.ceil(until / 1000) * 1000;
}

/** Parses an event. @returns undefined for anything invalid. */
export function readEvent(text: unknown, nowMs: number): SharedEvent | undefined {
  if (typeof text !== "string" || text.length > LONGEST) return undefined;
  const value = jsonObjectIn(text);
  if (value === undefined) return undefined;
  const attempt = attemptIn(value["attempt"]);
  if (attempt !== undefined) return { attempt };
  const revocation = revocationIn(value["revocation"], nowMs);
  return revocation && { revocation };
}

function attemptIn(value: unknown): AttemptEnd | undefined {
  if (!Array.isArray(value) || value.length !== 5) return undefined;
  const [failed, known, ...digests]: unknown[] = value;
  const [account, pair, network] = digests.filter((each) => isDigest(each));
  if (account === undefined || pair === undefined || network === undefined) return undefined;
  return { failed: failed === 1, known: known === 1, account, pair, network };
}

function isDigest(value: unknown): value is string {
  return typeof value === "string" && DIGEST.test(value);
}

function revocationIn(value: unknown, nowMs: number): Revocation | undefined {
  if (!isJsonObject(value)) return undefined;
  const { name, issuer, before, until } = value;
  const kind = REVOCATION_KINDS.find((known) => known === value["kind"]);
  if (kind === undefined || !isText(name)) return undefined;
  const { named, dated } = REVOCATION_FORMS[kind];
  if ((name !== "") !== (named !== undefined)) return undefined;
  if (typeof until !== "number" || !(until > nowMs && until < nowMs + LONGEST_LIFE_MS)) return;
  if (issuer !== undefined && !isText(issuer)) return undefined;
  if (dated && !(typeof before === "number" && Number.isFinite(before))) return;
  return {
    kind,
    name,
    until,
    ...(issuer !== undefined && { issuer }),
    ...(typeof before === "number" && { before }),
  };
}

function isText(value: unknown): value is string {
  return typeof value === "string" && value.isWellFormed() && !CONTROL.test(value);
}

/** The names of the keys that replicas share on the state server. */
export type StateKeys = ReturnType<typeof keysFor>;

/**
 * Returns the keys for a prefix. All are in one hash slot, so that a script can use several of them in a cluster,
 * too.
 */
export function keysFor(prefix: string) {
  const key = (name: string): string => `{${prefix}}${name}`;
  return {
    /** Written to check that the server accepts writes. */
    probe: key("probe"),
    /** A random value, set once: a different one means that the server was emptied. */
    mark: key("mark"),
    /** The mark up to which the server has been refilled with revocations. */
    filled: key("filled"),
    /** The replica that is refilling it. */
    filling: key("filling"),
    /** A stream of the events that replicas exchange. */
    events: key("events"),
    /** A sorted set of the revocations, by their end. */
    revocations: key("revocations"),
    /** The spending of one caller of a rate limit. */
    rate: (digest: string): string => key(`rate:${digest}`),
    /** A proof that was used. */
    proof: (digest: string): string => key(`proof:${digest}`),
    /**
     * For one caller of a concurrency limit: a hash with the requests in flight of each replica, and a sorted set with
     * the time at which each replica reported them.
     */
    inFlight: (digest: string): readonly [counts: string, told: string] => [
      key(`inflight:${digest}`),
      key(`inflight:${digest}:told`),
    ],
  } as const;
}
