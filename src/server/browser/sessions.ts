import type { Answer, Endpoint, EndpointCall } from "../request/gate.ts";
import { errorRow, GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { withoutFields } from "../../lib/http/header-values.ts";
import { canonicalPath, isOwnPath } from "../../lib/http/path/canonical-path.ts";
import { TokenPlaces } from "../../core/request/token-place.ts";
import {
  type AuthenticateOptions,
  checkLoginHead,
  FORM_TYPE,
  logInBy,
  type LoginRequest,
  parseLoginRequest,
  readLoginBody,
} from "../endpoints/authenticate.ts";
import type { LogOut } from "../endpoints/logout.ts";
import { isSameOrigin, originOf } from "../request/own-origin.ts";
import type { RequestContext } from "../request/request-context.ts";
import { cookieField, seeOther, successAnswer, usualFields } from "../request/write-answer.ts";
import {
  type OfferedProvider,
  PROVIDER_SIGN_IN,
  providerEndpoints,
  type ProviderEndpointsOptions,
} from "./provider-endpoints.ts";
import {
  link,
  PAGE_FIELDS,
  type PageContent,
  type PageWords,
  providerLinks,
  renderPage,
  signInForm,
  signOutForm,
  VARIES,
} from "./page.ts";

export interface SessionOptions
  extends AuthenticateOptions, Omit<ProviderEndpointsOptions, "destination" | "sessionOf"> {
  readonly lifetimeMs: number;
  /** Undefined: no page, the envelope for everybody. */
  readonly page: PageWords | undefined;
  /** The issuer of our own tokens. */
  readonly issuer: string;
  readonly revoke: LogOut;
  /** Whether there are users with names and passwords. */
  readonly hasUsers: boolean;
}

/** What browsers keep of one cookie: its name, value and attributes together (RFC 6265bis §5.6). */
const COOKIE_BYTES = 4_096;

/**
 * People with browsers: the sign-in page, the session, and its end. The session is a token of our own in a cookie; nothing else is
 * kept.
 */
export class Sessions {
  readonly #options: SessionOptions;
  readonly #login: string;
  readonly #logout: string;
  /** Where the browser goes after a sign-in that failed once. */
  readonly #destinations = new WeakMap<GateRequest, string>();
  /** By path. */
  readonly endpoints: ReadonlyMap<string, Endpoint>;

  constructor(options: SessionOptions) {
    const { ownPath, cookie, page } = options;
    this.#options = options;
    this.#login = `${ownPath}/login`;
    this.#logout = `${ownPath}/logout`;
    const session = new TokenPlaces([{ cookie }]);
    const pageMethods = page === undefined ? [] : ["GET", "HEAD"];
    const signIn: Endpoint = {
      name: "sign_in",
      methods: [...pageMethods, ...(options.hasUsers ? ["POST"] : [])],
      auth: "none",
      checkHead: (request, incoming) => {
        if (request.method === "POST") checkSignIn(request, incoming);
      },
      answer: (call) => this.#signIn(call),
    };
    const signOut: Endpoint = {
      name: "sign_out",
      // A page with a button, for applications that have none.
      methods: [...pageMethods, "POST"],
      auth: "required",
      tokenFrom: session,
      acceptsRevoked: true,
      answer: (call) => this.#signOut(call),
    };
    const described: Endpoint = {
      name: "browser_session",
      methods: ["GET", "HEAD"],
      auth: "required",
      tokenFrom: session,
      answer: (call) => this.#describe(call),
    };
    this.endpoints = new Map([
      ...providerEndpoints({
        ...options,
        destination: (to) => this.#destination(to),
        sessionOf: (token) => this.#cookieOf(token),
      }),
      [this.#login, signIn],
      [this.#logout, signOut],
      [`${ownPath}/session`, described],
    ]);
  }

  /** The field that ends the session in the browser. */
  get end(): readonly string[] {
    return cookieField(this.#options.cookie, "", 0);
  }

  async #signIn(call: EndpointCall): Promise<Answer> {
    const { request, incoming } = call;
    const { page, lifetimeMs } = this.#options;
    if (request.method !== "POST" && page !== undefined) {
      const to = this.#destination(new URLSearchParams(request.query).get("to"));
      return this.#page(200, this.#signInPage(to, undefined), request.requestId);
    }
    checkSignIn(request, incoming);
    const isForm = sendsForm(incoming);
    const read = async (): Promise<LoginRequest> => {
      const body = await readLoginBody(call);
      if (!isForm) return parseLoginRequest(body);
      const { to, ...login } = parseForm(body);
      this.#destinations.set(request, this.#destination(to));
      return login;
    };
    const { token } = await logInBy(this.#options, call, read, lifetimeMs);
    const session = this.#cookieOf(token);
    if (isForm) return seeOther(this.#destinations.get(request) ?? "/", request, session);
    return successAnswer(request, "Authentication succeeded", {}, session);
  }

  /** @throws GateError `forbidden` if browsers would drop it. */
  #cookieOf(token: string): readonly string[] {
    const { cookie, lifetimeMs } = this.#options;
    const fields = cookieField(cookie, token, Math.floor(lifetimeMs / 1_000));
    if ((fields[1]?.length ?? 0) > COOKIE_BYTES) {
      const message = "This account is in too many groups for the session of a browser";
      throw new GateError("forbidden", { message, reason: "session_too_large" });
    }
    return fields;
  }

  async #signOut({ request, identity }: EndpointCall): Promise<Answer> {
    const { issuer, revoke } = this.#options;
    if (request.method !== "POST") {
      const content = signOutForm(this.#logout, identity?.subject);
      return this.#page(200, { heading: "Sign out", content }, request.requestId);
    }
    if (!isSameOrigin(request, undefined)) throw new GateError("cross_site");
    if (identity?.issuer !== issuer) throw new GateError("forbidden");
    await revoke(identity, request);
    const { providers, signIns, ownPath } = this.#options;
    const provider = providers.find(({ name }) => name === identity.claims?.get("idp"));
    const origin = originOf(request);
    if (provider?.signsOut !== true || origin === undefined) return this.#left(request);
    const url = await signIns.signOutUrl(provider.name, `${origin}${ownPath}/login`);
    return url === undefined ? this.#left(request) : seeOther(url, request, this.end);
  }

  #left(request: GateRequest): Answer {
    return seeOther(this.#options.page === undefined ? "/" : this.#login, request, this.end);
  }

  async #describe({ request, identity }: EndpointCall): Promise<Answer> {
    if (identity === undefined) throw new GateError("unauthenticated");
    const { subject: username, groups, expiresAt } = identity;
    const expires = new Date(expiresAt * 1_000).toISOString();
    return successAnswer(request, "Signed in", { username, groups, expires });
  }

  /** Returns the page that a person gets instead of a refusal; undefined for those who get the envelope. */
  pageOf(refusal: Answer, error: GateError, context: RequestContext): Answer | undefined {
    const { request, decision } = context;
    const isLogout = decision?.endpoint === this.endpoints.get(this.#logout);
    const leaves = isLogout && request !== undefined && context.transfer.question === undefined;
    // Whose session has ended has signed out. A form of another site comes without the cookie, and must not clear it.
    if (leaves && refusal.status === 401 && isSameOrigin(request, undefined)) {
      return this.#left(request);
    }
    if (!this.#reads(context)) return undefined;
    const { page, providers } = this.#options;
    const automatic = providers.find((each) => each.automatic);
    // Any other refusal may come back with the next token, too.
    const begins = ["missing", "expired"].includes(decision?.tokenRefusal?.reason ?? "");
    if (automatic !== undefined && begins && request !== undefined && this.#mayHelp(context)) {
      return seeOther(this.#addressOf(automatic, this.#here(request)), request, VARIES);
    }
    if (page === undefined) return undefined;
    const content = this.#contentOf(refusal, error, context);
    return this.#page(refusal.status, content, context.requestId, refusal);
  }

  /** Whether a person reads the answer: a navigation, or a form of ours. */
  #reads({ incoming, headers, request, decision }: RequestContext): boolean {
    const { method } = request ?? incoming;
    const isOurs = this.endpoints.get(decision?.request.matchPath ?? "") === decision?.endpoint;
    if (method === "POST" && isOurs && decision?.endpoint !== undefined) return sendsForm(incoming);
    if (method !== "GET" && method !== "HEAD") return false;
    const { "sec-fetch-mode": mode, "sec-fetch-dest": destination, accept = "" } = headers;
    if (
      mode !== undefined ||
      destination !== undefined ||
      headers["sec-fetch-site"] !== undefined
    ) {
      return mode === "navigate" && destination === "document";
    }
    return /^\s*text\/html\b/i.test(accept);
  }

  #contentOf(refusal: Answer, error: GateError, context: RequestContext): PageContent {
    const { request, decision } = context;
    const { status } = refusal;
    const signsIn = decision?.endpoint === this.endpoints.get(this.#login);
    if (signsIn && request !== undefined && request.method === "POST") {
      const wait = error.retryAfter === undefined ? "" : ` (in ${waitWords(error.retryAfter)})`;
      const to = this.#destinations.get(request) ?? "/";
      return this.#signInPage(to, `${error.message}${wait}`);
    }
    const here = this.#here(request);
    if (status === 401 && this.#mayHelp(context)) {
      const isNew = decision?.tokenRefusal?.reason === "missing";
      return this.#signInPage(here, isNew ? undefined : "Your session has ended");
    }
    const subject = decision?.identity?.subject;
    if (status === 403 && subject !== undefined) {
      const notice = `You are signed in as ${subject}, who may not open this page.`;
      return { heading: "No access", notice, content: signOutForm(this.#logout) };
    }
    const wait =
      error.retryAfter === undefined ? "" : ` Try again in ${waitWords(error.retryAfter)}.`;
    const heading =
      errorRow(error.code).proxyStatus === undefined
        ? "This did not work"
        : "The application does not answer";
    // What a provider has sent back counts once.
    const returns = request?.path.endsWith("/callback") === true;
    const fromProvider = request !== undefined && decision?.endpoint?.name === PROVIDER_SIGN_IN;
    const begin = returns || request === undefined ? this.#login : request.path + request.query;
    const href = fromProvider ? begin : here;
    const [message = ""] = wait === "" ? [error.message] : error.message.split(", try again");
    return { heading, notice: `${message}.${wait}`, content: link(href, "Try again") };
  }

  /** Whether a session would let the request pass. Elsewhere, signing in would lead back to the page. */
  #mayHelp({ decision }: RequestContext): boolean {
    const { tokenFrom, auth = "required" } = decision?.route ?? { tokenFrom: { session: true } };
    return tokenFrom?.session === true && auth !== "certificate";
  }

  #here(request: GateRequest | undefined): string {
    return this.#destination(request === undefined ? null : request.path + request.query);
  }

  /** Returns the address at which a sign-in at a provider begins. */
  #addressOf({ name }: OfferedProvider, to: string): string {
    return `${this.#login}/${name}?to=${encodeURIComponent(to)}`;
  }

  /** Returns a path of this host that is none of ours; `/` for anything else. */
  #destination(to: string | null): string {
    const path = localPath(to);
    const [asked = ""] = path.split("?", 1);
    const matchPath = canonicalPath(asked)?.matchPath ?? asked;
    return isOwnPath(this.#options.ownPath, matchPath) ? "/" : path;
  }

  #signInPage(to: string, notice: string | undefined): PageContent {
    const { hasUsers, providers } = this.#options;
    const links = providers.map((each) => ({
      href: this.#addressOf(each, to),
      text: each.label,
    }));
    const form = hasUsers ? signInForm(this.#login, to) : undefined;
    return { heading: "Sign in", notice, content: providerLinks(links, form) };
  }

  /** @param instead what everybody else would get: its other fields stay. */
  #page(status: number, content: PageContent, requestId: string, instead?: Answer): Answer {
    const { page = { title: "" } } = this.#options;
    const body = renderPage(page, content, requestId);
    const others =
      instead === undefined ? usualFields(requestId) : withoutFields(instead.headers, REPLACED);
    const length = ["Content-Length", String(Buffer.byteLength(body))];
    return {
      status,
      body,
      close: instead?.close ?? false,
      headers: [...PAGE_FIELDS, ...length, ...others],
    };
  }
}

const REPLACED = new Set(["content-type", "content-length"]);

function sendsForm({ headers }: Pick<IncomingRequest, "headers">): boolean {
  return FORM_TYPE.test(headers["content-type"]?.trim() ?? "");
}

/** @throws GateError `cross_site`, `login_media_type` or `login_too_large`. */
function checkSignIn(request: GateRequest, incoming: IncomingRequest): void {
  // Otherwise another site could sign people in as somebody else (login CSRF).
  if (!isSameOrigin(request, undefined)) throw new GateError("cross_site");
  checkLoginHead(request, incoming, sendsForm(incoming) ? FORM_TYPE : undefined);
}

/** @throws GateError `login_malformed`. */
function parseForm(body: Buffer): LoginRequest & { readonly to: string | null } {
  const fields = new URLSearchParams(body.toString("utf8"));
  const one = (name: string): string => {
    const [value = "", another] = fields.getAll(name);
    if (another === undefined && value !== "") return value;
    const message = `The field ${name} must be sent once, and must not be empty`;
    throw new GateError("login_malformed", { message, reason: "malformed" });
  };
  return { username: one("username"), password: one("password"), to: fields.get("to") };
}

/** Two slashes begin another host, in the reading of browsers also with a backslash, a tab or a line break. */
const LOCAL = /^\/(?![/\\])[^\\\p{Cc}\p{Cf}\s]*$/u;
const LONGEST = 2_048;

/** Returns a path of this host; `/` for anything else. */
function localPath(to: string | null): string {
  if (to === null || to.length > LONGEST || !LOCAL.test(to)) return "/";
  const base = "https://host.invalid";
  if (!URL.canParse(to, base)) return "/";
  const { origin, pathname, search } = new URL(to, base);
  const path = pathname + search;
  return origin === base && !path.startsWith("//") && path.length <= LONGEST ? path : "/";
}

function waitWords(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 120) return whole === 1 ? "a second" : `${whole} seconds`;
  return `${Math.ceil(whole / 60)} minutes`;
}
