import type { KeyObject } from "node:crypto";
import {
  allowInsecureRequests,
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  buildEndSessionUrl,
  calculatePKCECodeChallenge,
  type ClientAuth,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration as Client,
  customFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  None,
  PrivateKeyJwt,
  randomNonce,
  randomPKCECodeVerifier,
  randomState,
} from "openid-client";
import type { Configuration } from "../../config/configuration.ts";
import { GateError } from "../../core/request/errors.ts";
import type { RemoteCheckObserver } from "../../core/remote-check.ts";
import type { Clock } from "../../lib/clock.ts";
import { FairQuestions } from "../../lib/async/fair-questions.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import { RemoteClient } from "../../lib/http/remote-client.ts";
import {
  codeOrMessage,
  NotAskedError,
  RemoteError,
  remoteFailure,
  systemCode,
} from "../../lib/text/error-code.ts";
import { ASYMMETRIC_ALGORITHMS, isSignedWith } from "../keys/algorithms.ts";
import { readJwkSet, selectKey, type VerificationKey } from "../keys/key-set.ts";
import { issuerNamedIn, namedAddressProblem, otherSlash } from "../trusted/key-set-server.ts";
import { claimAt, isDate, isFor } from "../verify/claims.ts";
import { readToken, type UnverifiedToken } from "../verify/token-text.ts";

type Written = NonNullable<Configuration["browser"]>["providers"][number];

export interface ProviderSettings extends Pick<
  Written,
  "issuer" | "caFile" | "clientId" | "clientSecret" | "scopes" | "claims"
> {
  /** Signs what identifies us to the provider (`private_key_jwt`), instead of a secret. */
  readonly clientKey: { readonly key: KeyObject; readonly algorithm: string } | undefined;
  /** Further claims that are needed to judge who may sign in. */
  readonly needed: readonly string[];
}

/** What a sign-in must come back with. */
export interface SignInSecrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

/** The time for each answer of a provider, in seconds. */
const ANSWER_SECONDS = 5;
/** The largest answer of a provider, in bytes: token responses with many groups have some ten thousand. */
const LARGEST_ANSWER = 262_144;
/** The most exchanges at a time, which is also the number of connections. */
const EXCHANGES = 32;
/** How long an exchange may wait for its turn, in milliseconds. */
const WAIT_MS = 5_000;
/** Longer addresses do not fit into the head of an answer over HTTP/2. */
const LONGEST_LOCATION = 8_192;
/** How long the discovery document is used, in milliseconds. */
const DISCOVERED_MS = 3_600_000;
/** How long a provider rests after a failed discovery, or a failed fetch of its keys, in milliseconds. */
const REST_MS = 1_000;
/** How long the keys of logout tokens are used, and then those among which one is unknown, in milliseconds. */
const KEY_LIVES_MS = [600_000, 30_000];
/** How old a logout token may be (OpenID Connect Back-Channel Logout 1.0 §2.6 leaves it to us), in seconds. */
const LOGOUT_TOKEN_SECONDS = 600;
/** Tolerated difference between the provider's clock and ours, in seconds. */
const SKEW_SECONDS = 60;
/** Says that `email` belongs to the person (OpenID Connect Core 1.0 §5.1). */
export const EMAIL_VERIFIED = "email_verified";
const LOGOUT_TYPE = "logout+jwt";
const LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout";
/** What WebCrypto calls the families of signature algorithms (W3C Web Cryptography API); it ignores what one does not have. */
const FAMILIES = new Map(Object.entries({ ES: "ECDSA", RS: "RSASSA-PKCS1-v1_5", PS: "RSA-PSS" }));
/** Statuses whose responses have no content (Fetch §3.3). */
const NULL_BODY = new Set([101, 204, 205, 304]);

/** The client of one OpenID provider: authorization code with PKCE, by openid-client. */
export class OpenIdProvider {
  readonly #settings: ProviderSettings;
  readonly #failing: RemoteCheckObserver["failed"];
  readonly #clock: Clock;
  readonly #http: RemoteClient;
  readonly #exchanges = new FairQuestions({
    atOnce: EXCHANGES,
    most: 4 * EXCHANGES,
    mostOfClient: EXCHANGES,
  });
  #discovered: { readonly client: Client; readonly until: number } | undefined;
  readonly #discoveries = new SingleFlight<Client>();
  #failed: { readonly until: number; readonly error: unknown } | undefined;
  /** The `Date` of the last answer. */
  #date: string | undefined;
  /** The keys that sign logout tokens, and when they were fetched: monotonic, in milliseconds. */
  #keys: readonly VerificationKey[] = [];
  #keysFetchedAt = -Infinity;
  readonly #keyFetches = new SingleFlight<void>();

  constructor(settings: ProviderSettings, failing: RemoteCheckObserver["failed"], clock: Clock) {
    this.#settings = settings;
    this.#failing = failing;
    this.#clock = clock;
    const { caFile } = settings;
    this.#http = new RemoteClient({ caFile, connections: EXCHANGES, maxBytes: LARGEST_ANSWER });
  }

  close(): void {
    this.#http.close();
  }

  /** Reads the discovery document. @returns the `Date` of the answer. @throws RemoteError that says what is wrong. */
  async examine(): Promise<string | undefined> {
    const server = (await this.#discover()).serverMetadata();
    const urls = [server.authorization_endpoint, server.token_endpoint, server.jwks_uri];
    for (const url of urls) this.#requireOwn(url ?? "");
    return this.#date;
  }

  /** @param slot begins the `state`. @returns the address that the browser goes to. @throws GateError `provider_unavailable`. */
  begin(returnTo: string, slot: string): Promise<SignInSecrets & { readonly location: string }> {
    return this.#ask(async (client) => {
      const state = slot + randomState();
      const nonce = randomNonce();
      const verifier = randomPKCECodeVerifier();
      const location = buildAuthorizationUrl(client, {
        redirect_uri: returnTo,
        scope: this.#settings.scopes.join(" "),
        state,
        nonce,
        code_challenge: await calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      });
      this.#requireOwn(location.href);
      return { location: location.href, state, nonce, verifier };
    });
  }

  /**
   * Exchanges the code that a browser has brought back for claims (OpenID Connect Core 1.0 §3.1.3): those of the ID token, and
   * of the UserInfo endpoint where the ID token lacks one.
   *
   * @param network of the client: no one gets more than half of the exchanges that run at a time.
   * @throws GateError `sign_in_failed`, `forbidden` if the provider has refused the person, or `provider_unavailable`.
   */
  finish(
    url: URL,
    secrets: SignInSecrets,
    network: string,
  ): Promise<Readonly<Record<string, unknown>>> {
    const exchange = async (client: Client) => {
      const tokens = await authorizationCodeGrant(client, url, {
        expectedState: secrets.state,
        expectedNonce: secrets.nonce,
        pkceCodeVerifier: secrets.verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims();
      if (claims === undefined) throw new RemoteError("there is no ID token");
      const { claims: mapping, needed } = this.#settings;
      const { subject = "sub", groups = "groups" } = mapping;
      const wanted = [subject, groups, ...needed, ...(subject === "email" ? [EMAIL_VERIFIED] : [])];
      const lacks = wanted.some((name) => claimAt(claims, name) === undefined);
      if (!lacks || client.serverMetadata().userinfo_endpoint === undefined) return claims;
      const more = await fetchUserInfo(client, tokens.access_token, claims.sub);
      const both = { ...more, ...claims };
      // Whether an address was verified is said where the address comes from.
      const isOfMore = claims["email"] === undefined || claims[EMAIL_VERIFIED] === undefined;
      if (!isOfMore) return both;
      const isSame = more.email === both["email"];
      return { ...both, [EMAIL_VERIFIED]: isSame ? more[EMAIL_VERIFIED] : undefined };
    };
    return this.#ask((client) =>
      this.#exchanges.ask(network, AbortSignal.timeout(WAIT_MS), () => exchange(client)),
    );
  }

  /** @returns where a person signs out at the provider; undefined if it has no such place. */
  signOutUrl(returnTo: string): Promise<string | undefined> {
    return this.#ask(async (client) => {
      if (client.serverMetadata().end_session_endpoint === undefined) return undefined;
      const url = buildEndSessionUrl(client, { post_logout_redirect_uri: returnTo });
      this.#requireOwn(url.href);
      return url.href;
    });
  }

  /**
   * Reads a logout token (OpenID Connect Back-Channel Logout 1.0 §2.6): it ends one session, or all of an account.
   *
   * @returns the session (`sid`) or the account (`sub`), and `before`: only what began before it, in milliseconds since the epoch.
   * @throws GateError `sign_in_failed` if it is not valid, or `provider_unavailable`.
   */
  sessionsEndedBy(logoutToken: string) {
    return this.#ask(async (client) => {
      const read = readToken(logoutToken, [LOGOUT_TYPE]);
      if ("reason" in read) throw invalid();
      const { iss, aud, jti, events, sid, sub, nonce } = read.payload;
      const { iat, nbf = iat, exp = Number.MAX_SAFE_INTEGER } = read.payload;
      if (!isDate(iat) || !isDate(exp) || !isDate(nbf)) throw invalid();
      const nowMs = this.#clock.now();
      const now = Math.floor(nowMs / 1_000);
      const outside = Math.max(now - iat - LOGOUT_TOKEN_SECONDS, iat - now, nbf - now);
      const { issuer } = client.serverMetadata();
      const isOurs = iss === issuer && isFor(aud, this.#settings.clientId) && jti !== undefined;
      const isInTime = outside <= SKEW_SECONDS && now - exp < SKEW_SECONDS;
      const ends = typeof events === "object" && events !== null && LOGOUT_EVENT in events;
      // Otherwise an ID token could end the session that it began.
      const isLogout =
        ends && nonce === undefined && ["jwt", LOGOUT_TYPE].includes(read.type ?? "jwt");
      const ended = { sid: nameIn(sid), sub: nameIn(sub) };
      const names = ended.sid !== undefined || ended.sub !== undefined;
      if (!isInTime || !isOurs || !isLogout || !names) throw invalid();
      const { key } = await this.#keyOf(read, client);
      if (!isSignedWith(logoutToken, key, read.algorithm)) throw invalid();
      // One that is sent again ends no later session.
      return { ...ended, before: Math.min(nowMs, (iat + SKEW_SECONDS) * 1_000) };
    });
  }

  /** Finds the key of a logout token. An unknown one may be new, so the keys are fetched again unless that just happened. */
  async #keyOf({ kid, algorithm }: UnverifiedToken, client: Client): Promise<VerificationKey> {
    const { jwks_uri: url = "" } = client.serverMetadata();
    for (const lifeMs of KEY_LIVES_MS) {
      const isOld = this.#clock.monotonic() >= this.#keysFetchedAt + lifeMs;
      const fetch = () => this.#unlessResting(() => this.#fetchKeys(url));
      if (isOld) await this.#keyFetches.run(url, fetch);
      const key = selectKey(this.#keys, kid, algorithm);
      if (typeof key !== "string") return key;
    }
    throw invalid();
  }

  async #fetchKeys(url: string): Promise<void> {
    const headers = { accept: "application/json, application/jwk-set+json" };
    const response = await this.#fetch(url, { method: "GET", headers });
    if (response.status !== 200) throw new RemoteError(`status ${response.status}`);
    this.#keys = readJwkSet(await response.text(), ASYMMETRIC_ALGORITHMS).keys;
    this.#keysFetchedAt = this.#clock.monotonic();
  }

  /** Fetches something, unless a fetch has just failed: strangers begin sign-ins, and make up logout tokens. */
  async #unlessResting<Result>(fetch: () => Promise<Result>): Promise<Result> {
    const { until, error } = this.#failed ?? { until: -Infinity };
    if (this.#clock.monotonic() < until) throw error;
    return fetch().catch((cause: unknown) => {
      this.#failed = { until: this.#clock.monotonic() + REST_MS, error: cause };
      throw cause;
    });
  }

  /** Asks the provider, and reports its failures. */
  async #ask<Answer>(question: (client: Client) => Promise<Answer>): Promise<Answer> {
    const began = this.#clock.monotonic();
    try {
      return await question(await this.#discover());
    } catch (error) {
      const refusal = error instanceof GateError ? error : refusalIn(error);
      if (refusal !== undefined) throw refusal;
      if (error instanceof NotAskedError) {
        throw new GateError("provider_unavailable", { retryAfter: 1 });
      }
      this.#failing(failureIn(error), (this.#clock.monotonic() - began) / 1_000);
      throw new GateError("provider_unavailable", { retryAfter: 5 });
    }
  }

  async #discover(): Promise<Client> {
    const known = this.#discovered;
    if (known !== undefined && this.#clock.monotonic() < known.until) return known.client;
    try {
      return await this.#discoveries.run("", () => this.#unlessResting(() => this.#discoverNow()));
    } catch (error) {
      if (known === undefined) throw error;
      return known.client;
    }
  }

  async #discoverNow(): Promise<Client> {
    const { issuer, clientId } = this.#settings;
    try {
      const client = await discovery(new URL(issuer), clientId, undefined, this.#authentication(), {
        timeout: ANSWER_SECONDS,
        [customFetch]: (url, options) => this.#fetch(url, options),
        execute: [
          enableNonRepudiationChecks,
          ...(issuer.startsWith("http:") ? [allowInsecureRequests] : []),
        ],
      });
      this.#discovered = { client, until: this.#clock.monotonic() + DISCOVERED_MS };
      this.#keysFetchedAt = -Infinity;
      return client;
    } catch (cause) {
      const other = systemCode(cause) === "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED";
      const slash = otherSlash(cause instanceof Error && issuerNamedIn(cause), issuer);
      const why = other ? `the document names another issuer${slash}` : failureIn(cause);
      throw new RemoteError(`discovery failed: ${why}`, cause);
    }
  }

  /** How we identify ourselves (OpenID Connect Core 1.0 §9): by a key, by a secret, or not at all. */
  #authentication(): ClientAuth {
    const { clientSecret, clientKey } = this.#settings;
    if (clientKey !== undefined) {
      const { key, algorithm } = clientKey;
      const bits = algorithm.slice(2);
      const name = FAMILIES.get(algorithm.slice(0, 2)) ?? "Ed25519";
      const namedCurve = `P-${bits.replace("512", "521")}`;
      const parameters = { name, namedCurve, hash: `SHA-${bits}` };
      return PrivateKeyJwt(key.toCryptoKey(parameters, false, ["sign"]));
    }
    if (clientSecret === undefined) return None();
    const basic = ClientSecretBasic(clientSecret);
    const inBody = ClientSecretPost(clientSecret);
    return (server, ...rest) => {
      const { token_endpoint_auth_methods_supported: methods = [] } = server;
      const onlyInBody =
        methods.includes("client_secret_post") && !methods.includes("client_secret_basic");
      return (onlyInBody ? inBody : basic)(server, ...rest);
    };
  }

  /** @throws RemoteError if the discovery document leads to where only we can reach. */
  #requireOwn(url: string): void {
    if (url.length > LONGEST_LOCATION) {
      throw new RemoteError("an address in the discovery document is too long");
    }
    const wrong = namedAddressProblem(url.split("#", 1)[0], this.#settings.issuer);
    if (wrong !== undefined) throw new RemoteError(`an address in the discovery document ${wrong}`);
  }

  /** Sends the requests of the libraries: bounded, without redirects, and only to safe addresses. */
  async #fetch(
    url: string,
    options: {
      readonly method: string;
      readonly headers: Headers | Readonly<Record<string, string>>;
      readonly body?: unknown;
      readonly signal?: AbortSignal | undefined;
    },
  ): Promise<Response> {
    this.#requireOwn(url);
    const { method, headers, body, signal } = options;
    const limit = AbortSignal.timeout(ANSWER_SECONDS * 1_000);
    const sent = {
      method: method === "POST" ? ("POST" as const) : ("GET" as const),
      url,
      headers: Object.fromEntries(new Headers(headers)),
      ...(body instanceof URLSearchParams ? { body: body.toString() } : {}),
    };
    const answer = await this.#http.ask(sent, signal ? AbortSignal.any([signal, limit]) : limit);
    const { status, text, headers: fields } = answer;
    this.#date = fields.date;
    const type = fields["content-type"];
    const challenge = fields["www-authenticate"];
    return new Response(NULL_BODY.has(status) ? null : text, {
      status,
      headers: {
        ...(type === undefined ? {} : { "content-type": type }),
        ...(challenge === undefined ? {} : { "www-authenticate": challenge }),
      },
    });
  }
}

function nameIn(claim: unknown): string | undefined {
  return typeof claim === "string" && claim !== "" ? claim : undefined;
}

function invalid(): GateError {
  return new GateError("sign_in_failed", { reason: "sign_in_invalid" });
}

/** What the libraries call an answer that is wrong, rather than a provider that fails. */
const WRONG_ANSWERS: ReadonlySet<string> = new Set([
  "OAUTH_INVALID_RESPONSE",
  "OAUTH_JWT_CLAIM_COMPARISON_FAILED",
  "OAUTH_PARSE_ERROR",
  "OAUTH_JWT_TIMESTAMP_CHECK_FAILED",
  "OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED",
  "OAUTH_KEY_SELECTION_FAILED",
  "OAUTH_UNSUPPORTED_OPERATION",
]);

/** What a provider says of a person (RFC 6749 §4.1.2.1; OpenID Connect Core 1.0 §3.1.2.6). */
const DENIED: ReadonlySet<unknown> = new Set([
  "access_denied",
  "login_required",
  "consent_required",
  "interaction_required",
  "account_selection_required",
]);

/** Returns the refusal for an error that is not the provider's failure; undefined for a failure. */
function refusalIn(error: unknown): GateError | undefined {
  if (!(error instanceof Error)) return undefined;
  const said = "error" in error ? error.error : undefined;
  if (DENIED.has(said)) {
    const message = "The sign-in provider has refused this sign-in";
    return new GateError("forbidden", { message, reason: "sign_in_denied", cause: error });
  }
  const code = "code" in error ? String(error.code) : "";
  // A browser has brought it, so it says nothing of the provider.
  const isBrought = error instanceof AuthorizationResponseError;
  const isWrong = isBrought || said === "invalid_grant" || WRONG_ANSWERS.has(code);
  return isWrong
    ? new GateError("sign_in_failed", { reason: "sign_in_invalid", cause: error })
    : undefined;
}

/** Our own words, the code of the system, or the error that the provider named: never what it sent along. */
function failureIn(error: unknown): string {
  for (let cause = error; cause instanceof Error; { cause } = cause) {
    if (cause instanceof RemoteError) return cause.message;
    // Its message quotes the text.
    if (cause instanceof SyntaxError) return "it sends no valid JSON";
    if ("error" in cause && typeof cause.error === "string" && /^\w{1,40}$/.test(cause.error)) {
      return `it says ${cause.error}`;
    }
    if (cause.cause === undefined) return remoteFailure(cause);
  }
  return codeOrMessage(error);
}
