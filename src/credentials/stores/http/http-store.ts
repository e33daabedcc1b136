import type { Agent } from "node:http";
import type { User } from "../../../core/login.ts";
import { askRemote, remoteAgent, type RemoteAnswer } from "../../../lib/http/remote-request.ts";
import { isJsonObject, parseStrictJson } from "../../../lib/text/strict-json.ts";
import { MAX_PASSWORD_BYTES } from "../../hashing/new-hash.ts";
import type { AttemptOrigin } from "../../throttle/login-throttle.ts";
import {
  authoritiesIn,
  failureOf,
  isAskable,
  RecentTimes,
  sendableGroups,
  StoreAccess,
  StoreUnavailable,
  openTrust,
} from "../remote/store-access.ts";
import type { StoreSettings } from "../store-kinds.ts";
import type {
  FileReader,
  OpenUserStore,
  StoreContext,
  StoreKind,
  VerifyResult,
} from "../user-store.ts";

const POSITION = /^(?:0|[1-9]\d*)$/;

/**
 * Returns the value that a JSON Pointer (RFC 6901) refers to; undefined if there is none, as for `-` and for positions
 * beyond the end of an array.
 *
 * @param pointer empty for the whole value; otherwise it begins with a slash.
 */
function pointedAt(value: unknown, pointer: string): unknown {
  const [, ...tokens] = pointer.split("/");
  let at: unknown = value;
  for (const token of tokens) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(at)) at = POSITION.test(name) ? at[Number(name)] : undefined;
    else at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

/** The syntax of a JSON Pointer. */
export const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;

type HttpSettings = StoreSettings<"http">;

/** Maximum size of a response body, in bytes. A name and a thousand groups fit. */
const LARGEST_BODY = 65_536;

/** The kind of store that asks an existing login service. */
export const http: StoreKind<HttpSettings> = {
  open: async (settings, context) => new HttpStore(settings, context),
  async inspect({ caFile }, contentOf) {
    authoritiesIn(caFile, contentOf);
    return undefined;
  },
  clearText: ({ url }) => (url.startsWith("http:") ? { url, hint: "use TLS" } : undefined),
  hints: [
    {
      reason: /^status (?:404|405)/,
      hint: "does the path in `url` belong to the login, and does it accept POST?",
    },
    {
      reason: /^status 3/,
      hint: "Sallyport follows no redirects: set `url` to the final address",
    },
    {
      reason: /^status (?:400|415|422)/,
      hint: "does the login accept the body that `format` and `fields` describe?",
    },
    { reason: /^status 429/, hint: "the login throttles Sallyport: exempt it there" },
    {
      reason: /^status /,
      hint: "`status` of the store sets the meaning of each status: 200, 401 and 403 by default",
    },
  ],
};

class HttpStore implements OpenUserStore {
  readonly #settings: HttpSettings;
  readonly #context: StoreContext;
  readonly #access: StoreAccess;
  readonly #trust: ReturnType<typeof openTrust>;
  readonly #times = new RecentTimes();
  #agent: Agent;

  constructor(settings: HttpSettings, context: StoreContext) {
    this.#settings = settings;
    this.#context = context;
    this.#access = new StoreAccess("http", settings, context);
    this.#trust = openTrust("http", settings.caFile, context);
    this.#agent = agentFor(settings, this.#trust.authorities());
  }

  async verify(username: string, password: string, origin: AttemptOrigin): Promise<VerifyResult> {
    // The Basic scheme would split the name at its colon (RFC 7617 §2).
    const colon = this.#settings.format === "basic" && username.includes(":");
    if (!isAskable(username) || colon) return { result: "unknown" };
    const tooLong = Buffer.byteLength(password) > MAX_PASSWORD_BYTES;
    const shown = tooLong || !password.isWellFormed() ? "" : password;
    const verdict = await this.#access.run(origin, (leftMs) =>
      this.#ask(username, shown, AbortSignal.timeout(leftMs)),
    );
    // An empty, malformed, or overlong password is always wrong, even if the login service accepts an empty one.
    return verdict.result === "found" && shown === "" ? { result: "wrong" } : verdict;
  }

  get decoys(): OpenUserStore["decoys"] {
    return this.#times.decoys;
  }

  readonly failing = (): boolean => this.#access.failing();

  readonly connections = (): number => {
    const { sockets, freeSockets } = this.#agent;
    return [...Object.values(sockets), ...Object.values(freeSockets)].flat().length;
  };

  /** Tries a nonexistent name: any response with a configured meaning is fine. */
  readonly examine = (timeoutMs: number): Promise<string | undefined> =>
    failureOf(this.#ask("sallyport-doctor", "no password", AbortSignal.timeout(timeoutMs)));

  async reload(contentOf: FileReader): Promise<void> {
    if (!this.#trust.follow(contentOf)) return;
    // Connections of the previous agent close once they are idle.
    this.#agent = agentFor(this.#settings, this.#trust.authorities());
  }

  async close(): Promise<void> {
    this.#agent.destroy();
  }

  async #ask(username: string, password: string, signal: AbortSignal): Promise<VerifyResult> {
    const { status } = this.#settings;
    const began = this.#context.clock.monotonic();
    const credentials = { username, password };
    const answer = await askLogin(this.#settings, credentials, this.#agent, signal);
    if (status.unknown.includes(answer.status)) return { result: "unknown" };
    const found = status.success.includes(answer.status);
    if (!found && !status.wrong.includes(answer.status)) {
      throw new StoreUnavailable(`status ${answer.status}`);
    }
    this.#times.record(this.#context.clock.monotonic() - began);
    return found ? { result: "found", user: this.#userIn(answer, username) } : { result: "wrong" };
  }

  #userIn({ text }: RemoteAnswer, username: string): User {
    const { subject, groups } = this.#settings;
    const value = text.trim() === "" ? undefined : parsed(text);
    const name = pointedAt(value, subject) ?? username;
    if (typeof name !== "string" || !isAskable(name)) {
      throw new StoreUnavailable("the subject in the answer is not a valid name");
    }
    const listed = pointedAt(value, groups) ?? [];
    if (!Array.isArray(listed))
      throw new StoreUnavailable("the groups in the answer are not a list");
    return { name, groups: sendableGroups(listed, name, "http", this.#context.log) };
  }
}

function parsed(body: string): unknown {
  try {
    return parseStrictJson(body);
  } catch {
    throw new StoreUnavailable("the answer is not JSON");
  }
}

function agentFor({ url, connections }: HttpSettings, authorities: string | undefined): Agent {
  return remoteAgent(url.startsWith("https:"), connections, authorities);
}

type Credentials = { readonly username: string; readonly password: string };

/**
 * Submits a name and a password to another login. Follows no redirects, which could send the password to another
 * server.
 *
 * @throws RemoteError or the system's error.
 */
async function askLogin(
  settings: HttpSettings,
  credentials: Credentials,
  agent: Agent,
  signal: AbortSignal,
): Promise<RemoteAnswer> {
  const body = bodyOf(settings, credentials);
  const headers = headersOf(settings, credentials);
  const question = { method: "POST", url: settings.url, headers, body } as const;
  return askRemote(question, { agent, signal, maxBytes: LARGEST_BODY });
}

function bodyOf({ format, fields }: HttpSettings, { username, password }: Credentials): string {
  const named = { [fields.username]: username, [fields.password]: password };
  if (format === "json") return JSON.stringify(named);
  return format === "form" ? new URLSearchParams(named).toString() : "";
}

function headersOf(
  { format }: HttpSettings,
  { username, password }: Credentials,
): Record<string, string> {
  const common = { accept: "application/json" };
  if (format === "json") return { ...common, "content-type": "application/json" };
  if (format === "form") return { ...common, "content-type": "application/x-www-form-urlencoded" };
  const pair = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
  return { ...common, authorization: `Basic ${pair}` };
}
