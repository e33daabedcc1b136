import { createHash } from "node:crypto";
import { GateError, type Reason } from "../../core/request/errors.ts";
import type { BegunSignIn, FinishedSignIn, ReturnedSignIn, SignIns } from "../../core/login.ts";
import type { Log } from "../../core/log.ts";
import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { IdentityClaims } from "../../core/request/identity.ts";
import type { PublishRevocations, Revocation } from "../../core/revocation.ts";
import type { Clock } from "../../lib/clock.ts";
import { codeOrMessage } from "../../lib/text/error-code.ts";
import type { TokenIssuer } from "../issuer.ts";
import { personIn } from "../verify/claims.ts";
import { OpenIdProvider, type ProviderSettings } from "./openid-provider.ts";
import { openSignIn, sealSignIn, type SealingKeys } from "./sign-in-cookie.ts";

export interface SignInProvider extends ProviderSettings {
  readonly name: string;
  /** Whether a person may sign in. */
  admits(person: IdentityClaims): boolean;
  readonly check: RemoteCheckObserver;
}

export interface ProviderSignInsOptions {
  readonly providers: readonly SignInProvider[];
  readonly issuer: Pick<TokenIssuer, "issue">;
  /** The `iss` of our own tokens. */
  readonly issuerName: string;
  readonly lifetimeMs: number;
  readonly keys: SealingKeys;
  readonly publish: PublishRevocations;
  readonly clock: Clock;
  readonly log: Log;
}

/** The most questions to providers at a time: each may take seconds. */
const MOST_AT_ONCE = 128;
/** How long a session stays ended at least, in milliseconds: the lifetime of its token may have been longer than it is now. */
const ENDED_MS = 31 * 24 * 3_600_000;

/** People who sign in at OpenID providers, and get a token of our own. */
export class ProviderSignIns implements SignIns {
  readonly #options: ProviderSignInsOptions;
  readonly #providers: ReadonlyMap<string, SignInProvider & { readonly client: OpenIdProvider }>;
  #running = 0;

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

  beginSignIn(name: string, returnTo: string, to: string): Promise<BegunSignIn> {
    return this.#limited(async () => {
      const { client } = this.#named(name);
      const { location, ...secrets } = await client.begin(returnTo);
      const pending = { ...secrets, provider: name, to, returnTo };
      const { keys, clock } = this.#options;
      const sealed = await sealSignIn(pending, keys, clock.now());
      return { location, state: secrets.state, sealed };
    });
  }

  finishSignIn(name: string, { url, sealed = "" }: ReturnedSignIn): Promise<FinishedSignIn> {
    return this.#limited(async () => {
      const { check, client, ...provider } = this.#named(name);
      const { keys, clock, log } = this.#options;
      const began = clock.monotonic();
      const counted = (allowed: boolean) =>
        check.answered(allowed, (clock.monotonic() - began) / 1_000);
      try {
        const pending = await openSignIn(sealed, keys, clock.now());
        const returned = new URL(url);
        const isOurs = pending?.provider === name && url.startsWith(`${pending.returnTo}?`);
        if (pending === undefined || !isOurs) throw failed("sign_in_state");
        const now = clock.now();
        const claims = await client.finish(returned, pending);
        const token = await this.#tokenFor(provider, claims, now);
        counted(true);
        return { token, to: pending.to };
      } catch (error) {
        if (!(error instanceof GateError) || error.code === "provider_unavailable") throw error;
        counted(false);
        const { reason, cause } = error;
        const why = cause === undefined ? {} : { error: codeOrMessage(cause) };
        log.info("a person could not sign in", { provider: name, reason, ...why });
        throw error;
      }
    });
  }

  async signOutUrl(name: string, returnTo: string): Promise<string | undefined> {
    try {
      return await this.#limited(() => this.#named(name).client.signOutUrl(returnTo));
    } catch {
      // The session here has ended all the same.
      return undefined;
    }
  }

  endSessions(name: string, logoutToken: string): Promise<void> {
    return this.#limited(async () => {
      const { client, issuer } = this.#named(name);
      const { issuerName, clock, publish, lifetimeMs, log } = this.#options;
      const ended = await client.sessionsEndedBy(logoutToken);
      const until = clock.now() + Math.max(lifetimeMs, ENDED_MS);
      const revocation: Revocation =
        "sid" in ended
          ? { kind: "session", name: sessionName(issuer, ended.sid), until }
          : {
              kind: "account",
              name: sessionName(issuer, ended.sub),
              issuer: issuerName,
              before: ended.before,
              until,
            };
      const kept = await publish([revocation]);
      log.info("a provider has ended sessions", { provider: name, ended: revocation.kind, kept });
    });
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
    const unverified =
      mapping.subject === "email" && [false, "false"].some((no) => claims["email_verified"] === no);
    if (unverified || !admits({ ...person, issuer: issuerName, ...times })) {
      const message = "Your account may not sign in here";
      throw new GateError("forbidden", { message, reason: "sign_in_refused" });
    }
    const { sid, sub, auth_time: at } = claims;
    const user = { name: person.subject, groups: person.groups };
    return this.#options.issuer.issue(user, nowMs, lifetimeMs, {
      idp: name,
      auth_time: typeof at === "number" && Number.isFinite(at) ? at : Math.floor(nowMs / 1_000),
      idp_sub: sessionName(issuer, String(sub)),
      ...(typeof sid === "string" ? { sid: sessionName(issuer, sid) } : {}),
    });
  }

  #named(name: string) {
    const provider = this.#providers.get(name);
    // A reload has removed it.
    if (provider === undefined) throw failed("sign_in_state");
    return provider;
  }

  async #limited<Answer>(work: () => Promise<Answer>): Promise<Answer> {
    if (this.#running >= MOST_AT_ONCE)
      throw new GateError("provider_unavailable", { retryAfter: 1 });
    this.#running += 1;
    try {
      return await work();
    } finally {
      this.#running -= 1;
    }
  }
}

/** What our tokens call a session or an account of a provider: no two providers can name the same. */
function sessionName(issuer: string, name: string): string {
  const named = JSON.stringify([issuer, name]);
  return createHash("sha256").update(named).digest("base64url").slice(0, 22);
}

function failed(reason: Reason): GateError {
  return new GateError("sign_in_failed", { reason });
}
