import type { Answer, Endpoint, EndpointCall } from "../request/gate.ts";
import { errorRow, GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import { TokenPlaces } from "../../core/request/token-place.ts";
import {
  type AuthenticateOptions,
  checkLoginHead,
  logInBy,
  type LoginRequest,
  parseLoginRequest,
  readLoginBody,
  requireLoginType,
} from "../endpoints/authenticate.ts";
import type { LogOut } from "../endpoints/logout.ts";
import { isSameOrigin } from "../request/decide.ts";
import type { RequestContext } from "../request/request-context.ts";
import { envelopeAnswer } from "../request/write-answer.ts";
import {
  link,
  PAGE_FIELDS,
  type PageContent,
  type PageWords,
  renderPage,
  signInForm,
  signOutForm,
} from "./page.ts";

export interface SessionOptions extends AuthenticateOptions {
  /** The prefix of the addresses below. */
  readonly ownPath: string;
  /** The name of the cookie. */
  readonly cookie: string;
  readonly lifetimeMs: number;
  /** Undefined: no page, the envelope for everybody. */
  readonly page: PageWords | undefined;
  /** The issuer of our own tokens. */
  readonly issuer: string;
  readonly revoke: LogOut;
}

/** What browsers keep of one cookie: its name, value and attributes together (RFC 6265bis §5.6). */
const COOKIE_BYTES = 4_096;
const ATTRIBUTES = "Path=/; Secure; HttpOnly; SameSite=Lax";

const FORM_TYPE = /^application\/x-www-form-urlencoded\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

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
    const signIn: Endpoint = {
      name: "sign_in",
      methods: page === undefined ? ["POST"] : ["GET", "HEAD", "POST"],
      auth: "none",
      checkHead: (request, incoming) => {
        if (request.method === "POST") checkSignIn(request, incoming);
      },
      answer: (call) => this.#signIn(call),
    };
    const signOut: Endpoint = {
      name: "sign_out",
      methods: ["POST"],
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
      [this.#login, signIn],
      [this.#logout, signOut],
      [`${ownPath}/session`, described],
    ]);
  }

  /** Whether a path is one of ours, in any case: it may bring a password, so no backend gets it. */
  owns(matchPath: string): boolean {
    const { ownPath } = this.#options;
    const { length } = ownPath;
    if (matchPath.length < length) return false;
    const next = matchPath[length];
    if (next !== undefined && /[\w-]/.test(next)) return false;
    return matchPath.slice(0, length).toLowerCase() === ownPath.toLowerCase();
  }

  /** The field that ends the session in the browser. */
  get end(): readonly string[] {
    return ["Set-Cookie", `${this.#options.cookie}=; Max-Age=0; ${ATTRIBUTES}`];
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
    const envelope = { id: request.id, message: "Authentication succeeded", success: true };
    return envelopeAnswer(200, envelope, { requestId: request.requestId, extra: session });
  }

  /** @throws GateError `forbidden` if browsers would drop it. */
  #cookieOf(token: string): readonly string[] {
    const { cookie, lifetimeMs } = this.#options;
    const seconds = Math.floor(lifetimeMs / 1_000);
    const field = `${cookie}=${token}; Max-Age=${seconds}; ${ATTRIBUTES}`;
    if (field.length > COOKIE_BYTES) {
      const message = "This account is in too many groups for the session of a browser";
      throw new GateError("forbidden", { message, reason: "session_too_large" });
    }
    return ["Set-Cookie", field];
  }

  async #signOut({ request, identity }: EndpointCall): Promise<Answer> {
    const { issuer, revoke } = this.#options;
    if (!isSameOrigin(request, undefined)) {
      throw new GateError("cross_site", { reason: "cross_site" });
    }
    if (identity?.issuer !== issuer) throw new GateError("forbidden");
    await revoke(identity, request);
    return this.#left(request);
  }

  #left(request: GateRequest): Answer {
    return seeOther(this.#options.page === undefined ? "/" : this.#login, request, this.end);
  }

  async #describe({ request, identity }: EndpointCall): Promise<Answer> {
    if (identity === undefined) throw new GateError("unauthenticated");
    const { subject: username, groups, expiresAt } = identity;
    const expires = new Date(expiresAt * 1_000).toISOString();
    const envelope = { id: request.id, message: "Signed in", success: true };
    return envelopeAnswer(200, { ...envelope, username, groups, expires }, request);
  }

  /** Returns the page that a person gets instead of a refusal; undefined for those who get the envelope. */
  pageOf(refusal: Answer, error: GateError, context: RequestContext): Answer | undefined {
    const { request, decision } = context;
    const leaves = decision?.endpoint === this.endpoints.get(this.#logout) && request !== undefined;
    // Whose session has ended has signed out. A form of another site comes without the cookie, and must not clear it.
    if (leaves && refusal.status === 401 && isSameOrigin(request, undefined)) {
      return this.#left(request);
    }
    if (this.#options.page === undefined || !this.#reads(context)) return undefined;
    const content = this.#contentOf(refusal, error, context);
    return this.#page(refusal.status, content, context.requestId, refusal);
  }

  /** Whether a person reads the answer: a navigation, or a form of ours. */
  #reads({ incoming, decision }: RequestContext): boolean {
    const { method, headers } = incoming;
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
    const here = this.#destination(request === undefined ? null : request.path + request.query);
    const { tokenFrom } = decision?.route ?? { tokenFrom: { session: true } };
    // Elsewhere, signing in would lead back to this page.
    if (status === 401 && tokenFrom?.session === true) {
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
    return { heading, notice: `${error.message}.${wait}`, content: link(here, "Try again") };
  }

  /** Returns a path of this host that is none of ours; `/` for anything else. */
  #destination(to: string | null): string {
    const path = localPath(to);
    return this.owns(path.split("?", 1)[0] ?? "") ? "/" : path;
  }

  #signInPage(to: string, notice: string | undefined): PageContent {
    return { heading: "Sign in", notice, content: signInForm(this.#login, to) };
  }

  /** @param instead what everybody else would get: its other fields stay. */
  #page(status: number, content: PageContent, requestId: string, instead?: Answer): Answer {
    const { page = { title: "" } } = this.#options;
    const body = renderPage(page, content, requestId);
    const others =
      instead === undefined
        ? [
            "Cache-Control",
            "no-store",
            "X-Content-Type-Options",
            "nosniff",
            "X-Request-Id",
            requestId,
          ]
        : withoutFields(instead.headers, REPLACED);
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

function withoutFields(fields: readonly string[], names: ReadonlySet<string>): string[] {
  return fields.filter((_, at) => !names.has(fields[at - (at % 2)]?.toLowerCase() ?? ""));
}

function sendsForm({ headers }: Pick<IncomingRequest, "headers">): boolean {
  return FORM_TYPE.test(headers["content-type"]?.trim() ?? "");
}

/** @throws GateError `cross_site`, `login_media_type` or `login_too_large`. */
function checkSignIn(request: GateRequest, incoming: IncomingRequest): void {
  // Otherwise another site could sign people in as somebody else (login CSRF).
  if (!isSameOrigin(request, undefined)) {
    throw new GateError("cross_site", { reason: "cross_site" });
  }
  if (sendsForm(incoming)) requireLoginType(FORM_TYPE, request, incoming);
  else checkLoginHead(request, incoming);
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

function seeOther(to: string, { requestId }: GateRequest, extra: readonly string[]): Answer {
  const headers = ["Location", to, "Content-Length", "0", "Cache-Control", "no-store"];
  return {
    status: 303,
    body: "",
    close: false,
    headers: [...headers, "Referrer-Policy", "no-referrer", "X-Request-Id", requestId, ...extra],
  };
}

function waitWords(seconds: number): string {
  const whole = Math.ceil(seconds);
  if (whole < 120) return whole === 1 ? "a second" : `${whole} seconds`;
  return `${Math.ceil(whole / 60)} minutes`;
}
