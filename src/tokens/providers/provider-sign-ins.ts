import { createHash } from "node:crypto";
import { LRUCache } from "lru-cache";
import { GateError, type Reason } from "../../core/request/errors.ts";
import {
  type BegunSignIn,
  type FinishedSignIn,
  type ReturnedSignIn,
  SIGN_IN_SECONDS,
  type SignInBeginning,
  type SignIns,
} from "../../core/login.ts";
import type { Log } from "../../core/log.ts";
import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import type { PublishRevocations } from "../../core/revocation.ts";
import type { Clock } from "../../lib/clock.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import type { TokenIssuer } from "../issuer.ts";
import { personIn } from "../verify/claims.ts";
import {
  EMAIL_VERIFIED,
  OpenIdProvider,
  type ProviderSettings,
  type SignInSecrets,
} from "./openid-provider.ts";
import type { RevocationList } from "../revocation/revocation-list.ts";
import { compactDecrypt } from "jose/jwe/compact/decrypt";
import { CompactEncrypt } from "jose/jwe/compact/encrypt";
import { derivedKey, type KeyRing, type SigningKeys } from "../keys/key-ring.ts";

interface SignInProvider extends ProviderSettings {
  readonly name: string;
  /** Whether a person may sign in. */
  admits(person: IdentityClaims): boolean;
  readonly check: RemoteCheckObserver;
}

interface ProviderSignInsOptions {
  readonly providers: readonly SignInProvider[];
  readonly issuer: Pick<TokenIssuer, "issue">;
  /** The `iss` of our own tokens. */
  readonly issuerName: string;
  readonly lifetimeMs: number;
  readonly keys: SealingKeys;
  readonly publish: PublishRevocations;
  readonly revocations: Pick<RevocationList, "sizeOf">;
  readonly clock: Clock;
  readonly log: Log;
}

/** What a browser keeps while a person is at a provider. */
interface PendingSignIn extends SignInSecrets {
  readonly provider: string;
  /** A reload may have given the name to another provider. */
  readonly issuer: string;
  /** Where the person wants to go. */
  readonly to: string;
  /** The address to which the provider sends the browser back. */
  readonly returnTo: string;
}

/** The keys that sign, and all that have signed. */
type SealingKeys = Pick<SigningKeys, "signing"> & { readonly ring: KeyRing };

const PURPOSE = "sign-in cookie";

/** Encrypts a sign-in, as a JWE. @throws GateError `keys_unusable` if there is no usable key. */
async function sealSignIn(
  pending: PendingSignIn,
  { signing }: SealingKeys,
  nowMs: number,
): Promise<string> {
  if (signing === undefined) throw new GateError("keys_unusable", { retryAfter: 5 });
  const exp = Math.floor(nowMs / 1_000) + SIGN_IN_SECONDS;
  return new CompactEncrypt(Buffer.from(JSON.stringify({ ...pending, exp })))
    .setProtectedHeader({ alg: "dir", enc: "A256GCM", kid: signing.kid })
    .encrypt(derivedKey(signing.key, PURPOSE));
}

/** Decrypts a sign-in; undefined if it is not one of ours, or took too long. */
async function openSignIn(
  sealed: string,
  { ring }: SealingKeys,
  nowMs: number,
): Promise<PendingSignIn | undefined> {
  try {
    const { plaintext } = await compactDecrypt(
      sealed,
      ({ kid }) => {
        const own = ring.find((each) => each.kid === kid && each.key.type !== "public");
        if (own === undefined) throw new Error("no key of ours");
        return derivedKey(own.key, PURPOSE);
      },
      { keyManagementAlgorithms: ["dir"], contentEncryptionAlgorithms: ["A256GCM"] },
    );
    const text = Buffer.from(plaintext).toString();
    const pending: PendingSignIn & { readonly exp: number } = JSON.parse(text);
    return pending.exp > Math.floor(nowMs / 1_000) ? pending : undefined;
  } catch {
    return undefined;
  }
}

/** How long a session stays ended at least, in milliseconds: the lifetime of its token may have been longer than it is now. */
const ENDED_MS = 24 * 3_600_000;
/** The most sessions that providers end within that time. */
const MOST_ENDED = 100_000;
/** The most sign-ins whose way back is remembered: each counts once. */
const MOST_TRIED = 10_000;

/** People who sign in at OpenID providers, and get a token of our own. */
export class ProviderSignIns implements SignIns {
  readonly #options: ProviderSignInsOptions;
  readonly #providers: ReadonlyMap<string, SignInProvider & { readonly client: OpenIdProvider }>;
  readonly #tried = new LRUCache<string, true>({ max: MOST_TRIED, ttl: SIGN_IN_SECONDS * 1_000 });

  constructor(options: ProviderSignInsOptions) {
    this.#options = options;
    const { clock } = options;
    this.#providers = new Map(
      options.providers.map((each) => {
        const failing = (reason: string, seconds: number) => each.check.failed(reason, seconds);
        return [each.name, { ...each, client: new OpenIdProvider(each, failing, clock) }];
      }),
    );
  }

  close(): void {
    for (const { client } of this.#providers.values()) client.close();
  }

  async beginSignIn(name: string, beginning: SignInBeginning): Promise<BegunSignIn> {
    const { client, issuer } = this.#named(name);
    const { slot, ...wanted } = beginning;
    const { location, ...secrets } = await client.begin(wanted.returnTo, slot);
    const pending = { ...secrets, ...wanted, provider: name, issuer };
    const { keys, clock } = this.#options;
    const sealed = await sealSignIn(pending, keys, clock.now());
    return { location, sealed };
  }

  async finishSignIn(name: string, returned: ReturnedSignIn): Promise<FinishedSignIn> {
    const { check, client, ...provider } = this.#named(name);
    const { clock, log } = this.#options;
    const began = clock.monotonic();
    const counted = (allowed: boolean) =>
      check.answered(allowed, (clock.monotonic() - began) / 1_000);
    try {
      const pending = await this.#pendingOf(provider, returned);
      const now = clock.now();
      const claims = await client
        .finish(new URL(returned.url), pending, returned.network)
        .catch((error: unknown) => {
          // The code may still be good: the person may try again.
          if (isUnavailable(error)) this.#tried.delete(pending.state);
          throw error;
        });
      const token = await this.#tokenFor(provider, claims, now);
      counted(true);
      return { token, to: pending.to };
    } catch (error) {
      if (!(error instanceof GateError) || isUnavailable(error)) throw error;
      const { reason, cause } = error;
      // What a stranger makes up must not pass for an answer of the provider, which may be away.
      if (reason !== "sign_in_state") counted(false);
      const why = cause === undefined ? {} : { error: codeOrMessage(cause) };
      log.info("a person could not sign in", { provider: name, reason, ...why });
      throw error;
    }
  }

  /** @returns the sign-in that the browser has begun. @throws GateError `sign_in_failed` if there is none, or if it came back before. */
  async #pendingOf(
    { name, issuer }: Pick<SignInProvider, "name" | "issuer">,
    { url, sealed = "" }: ReturnedSignIn,
  ): Promise<PendingSignIn> {
    const { keys, clock } = this.#options;
    const pending = await openSignIn(sealed, keys, clock.now());
    const isOurs = pending?.provider === name && pending.issuer === issuer;
    if (pending === undefined || !isOurs || !url.startsWith(`${pending.returnTo}?`)) {
      throw failed("sign_in_state");
    }
    const [state, another] = new URL(url).searchParams.getAll("state");
    // Only the way back itself counts: another site could send the browser here, with its cookie.
    if (state !== pending.state || another !== undefined) throw failed("sign_in_state");
    // Each sign-in sends one code to the provider, not one guess after the other.
    if (this.#tried.has(pending.state)) throw failed("sign_in_state");
    this.#tried.set(pending.state, true);
    return pending;
  }

  async signOutUrl(name: string, returnTo: string): Promise<string | undefined> {
    try {
      return await this.#named(name).client.signOutUrl(returnTo);
    } catch {
      // The session here has ended all the same.
      return undefined;
    }
  }

  async endSessions(name: string, logoutToken: string): Promise<void> {
    const { client, issuer } = this.#named(name);
    const { issuerName, clock, publish, revocations, lifetimeMs, log } = this.#options;
    const { sid, sub, before } = await client.sessionsEndedBy(logoutToken);
    if (revocations.sizeOf("session") + revocations.sizeOf("account") >= MOST_ENDED) {
      log.error("too many sessions were ended by providers", { provider: name });
      throw new GateError("provider_unavailable", { retryAfter: 60 });
    }
    const until = clock.now() + Math.max(lifetimeMs, ENDED_MS);
    const dates = { issuer: issuerName, before, until };
    const kind = sid === undefined ? "account" : "session";
    // A session whose ID token had no `sid` has the name of its account.
    const names = [
      ...(sid === undefined ? [] : [digestOf(issuer, "sid", sid)]),
      ...(sub === undefined ? [] : [digestOf(issuer, "sub", sub)]),
    ];
    const kept = await publish(names.map((each) => ({ kind, name: each, ...dates })));
    log.info("a provider has ended sessions", { provider: name, ended: kind, kept });
  }

  async #tokenFor(
    { name, issuer, claims: mapping, needed, admits }: Omit<SignInProvider, "check">,
    claims: Readonly<Record<string, unknown>>,
    nowMs: number,
  ): Promise<string> {
    const person = personIn(claims, mapping, needed);
    if (person === undefined) throw failed("sign_in_claims");
    const { lifetimeMs, issuerName } = this.#options;
    const expiresAt = Math.floor((nowMs + lifetimeMs) / 1_000);
    const times = { expiresAt, acceptedUntil: expiresAt * 1_000 };
    // An address that nobody has verified may be that of somebody else.
    const isVerified = [true, "true"].some((yes) => claims[EMAIL_VERIFIED] === yes);
    const unverified = mapping.subject === "email" && !isVerified;
    if (unverified || !admits({ ...person, issuer: issuerName, ...times })) {
      const message = "Your account may not sign in here";
      throw new GateError("forbidden", { message, reason: "sign_in_refused" });
    }
    const { sid, sub, auth_time: at } = claims;
    const account = digestOf(issuer, "sub", String(sub));
    const user = { name: person.subject, groups: person.groups };
    return this.#options.issuer.issue(user, nowMs, lifetimeMs, {
      idp: name,
      auth_time: typeof at === "number" && Number.isFinite(at) ? at : Math.floor(nowMs / 1_000),
      idp_sub: account,
      sid: typeof sid === "string" && sid !== "" ? digestOf(issuer, "sid", sid) : account,
    });
  }

  #named(name: string) {
    const provider = this.#providers.get(name);
    // A reload has removed it.
    if (provider === undefined) throw failed("sign_in_state");
    return provider;
  }
}

/** What our tokens call a session (`sid`) or an account (`sub`) of a provider: no two can name the same, whatever the slash at their end. */
function digestOf(issuer: string, claim: "sid" | "sub", name: string): string {
  const named = JSON.stringify([new URL(issuer).href, claim, name]);
  return createHash("sha256").update(named).digest("base64url").slice(0, 22);
}

function isUnavailable(error: unknown): boolean {
  return error instanceof GateError && error.code === "provider_unavailable";
}

function failed(reason: Reason): GateError {
  return new GateError("sign_in_failed", { reason });
}
