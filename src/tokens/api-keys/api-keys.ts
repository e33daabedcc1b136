import { hash, timingSafeEqual } from "node:crypto";
import { GateError } from "../../core/request/errors.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import type { TokenRefusal, UnprovenVerdict } from "../../core/request/token-verifier.ts";
import type { Clock } from "../../lib/clock.ts";
import type { RevocationList } from "../revocation/revocation-list.ts";
import { VerifiedToken } from "../verify/verified-token.ts";
import { apiKeyId, type ApiKeyRow } from "./api-key-file.ts";

/** The issuer in the identity of callers with an API key. */
export const API_KEY_ISSUER = "api-keys";
/** The claim with the name of the key. */
const API_KEY_CLAIM = "api_key";

/** `sp_`, the id of the name, and 256 bits. */
const FORM = /^sp_([0-9a-f]{12})_[A-Za-z0-9_-]{43}$/;
/** The end of a key that never expires: that of the four digits of a year. */
const NEVER_MS = Date.UTC(9999, 11, 31);

const MALFORMED: TokenRefusal = { step: "form", reason: "malformed", detail: "it is no API key" };
const UNKNOWN: TokenRefusal = { step: "key", reason: "unknown_key" };
const DISABLED: TokenRefusal = { step: "signature", reason: "inactive" };
const EXPIRED: TokenRefusal = { step: "claims", reason: "expired" };

/** How far the clock that wrote when a key was made may be ahead of ours, in milliseconds. */
const CLOCK_AHEAD_MS = 5 * 60_000;

/** The keys of all stores, as plain data for other threads. */
export interface ApiKeySet {
  readonly rows: readonly ApiKeyRow[];
  /** Whether every store was read. If not, a key that is not among the rows may be valid. */
  readonly complete: boolean;
}

interface KnownKey {
  readonly digest: Buffer;
  readonly disabled: boolean;
  readonly verified: VerifiedToken;
}

/** @throws GateError `keys_unusable` if the key is not known, and a store was never read. */
export type VerifyApiKey = (key: string) => UnprovenVerdict;

/** Returns a function that verifies API keys. It looks a key up by its id, and compares its hash in constant time. */
export function apiKeyVerifier(
  { rows, complete }: ApiKeySet,
  revocations: RevocationList,
  clock: Clock,
): VerifyApiKey {
  const byId: ReadonlyMap<string, KnownKey> = new Map(
    rows.map((row) => [
      apiKeyId(row.name),
      {
        digest: Buffer.from(row.hash, "hex"),
        disabled: row.disabled,
        verified: new VerifiedToken(claimsOf(row, clock.now()), row.hash, undefined),
      },
    ]),
  );

  function unknown(): TokenRefusal {
    if (complete) return UNKNOWN;
    throw new GateError("keys_unusable", { retryAfter: 1 });
  }

  return (key) => {
    const [, id = ""] = FORM.exec(key) ?? [];
    if (id === "") return MALFORMED;
    const known = byId.get(id);
    // Clients must not learn which names exist.
    if (known === undefined) return unknown();
    if (!timingSafeEqual(hash("sha256", key, "buffer"), known.digest)) return unknown();
    if (known.disabled) return DISABLED;
    if (clock.now() >= known.verified.until) return EXPIRED;
    return known.verified.verdict(revocations);
  };
}

function claimsOf(row: ApiKeyRow, nowMs: number): IdentityClaims {
  const { name, subject, groups, scopes, created = Infinity, expires = NEVER_MS } = row;
  // A time to come says nothing: no revocation of the subject would ever end the key.
  const isKnown = created <= nowMs + CLOCK_AHEAD_MS;
  return {
    subject,
    groups,
    scopes,
    issuer: API_KEY_ISSUER,
    expiresAt: Math.floor(expires / 1_000),
    acceptedUntil: expires,
    issuedAt: isKnown ? Math.floor(created / 1_000) : undefined,
    claims: new Map([[API_KEY_CLAIM, name]]),
  };
}
