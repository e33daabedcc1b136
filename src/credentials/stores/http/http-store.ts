import type { Log } from "../../../core/log.ts";
import type { User } from "../../../core/login.ts";
import { askRemote, remoteAgent, type RemoteQuestion } from "../../../lib/http/remote-request.ts";
import { isJsonObject, parseStrictJson } from "../../../lib/text/strict-json.ts";
import { MAX_PASSWORD_BYTES } from "../../hashing/new-hash.ts";
import {
  failureOf,
  isAskable,
  RecentTimes,
  sendableGroups,
  StoreAccess,
  StoreUnavailable,
  openTrust,
} from "../remote/store-access.ts";
import type { StoreSettings } from "../store-kinds.ts";
import type { OpenUserStore, StoreContext, StoreKind, VerifyResult } from "../user-store.ts";

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
  open,
  clearText: ({ url }) => (url.startsWith("http:") ? { url, hint: "use TLS" } : undefined),
  hints: [
    [/^status (?:404|405)/, "does the path in `url` belong to the login, and does it accept POST?"],
    [/^status 3/, "Sallyport follows no redirects: set `url` to the final address"],
    [
      /^status (?:400|415|422)/,
      "does the login accept the body that `format` and `fields` describe?",
    ],
    [/^status 429/, "the login throttles Sallyport: exempt it there"],
    [
      /^status /,
      "`status` of the store sets the meaning of each status: 200, 401 and 403 by default",
    ],
  ],
};

async function open(settings: HttpSettings, context: StoreContext): Promise<OpenUserStore> {
  const { url, format, connections, status, caFile } = settings;
  const { clock, log } = context;
  const access = new StoreAccess("http", settings, context);
  const trust = openTrust("http", caFile, context);
  const times = new RecentTimes();
  const newAgent = () => remoteAgent(url.startsWith("https:"), connections, trust.authorities());
  let agent = newAgent();

  async function ask(username: string, password: string, limitMs: number): Promise<VerifyResult> {
    const began = clock.monotonic();
    const exchange = { agent, signal: AbortSignal.timeout(limitMs), maxBytes: LARGEST_BODY };
    // It follows no redirects, which could send the password to another server.
    const answer = await askRemote(questionOf(settings, username, password), exchange);
    if (status.unknown.includes(answer.status)) return { result: "unknown" };
    const found = status.success.includes(answer.status);
    if (!found && !status.wrong.includes(answer.status)) {
      throw new StoreUnavailable(`status ${answer.status}`);
    }
    times.record(clock.monotonic() - began);
    if (!found) return { result: "wrong" };
    return { result: "found", user: userIn(answer.text, username, settings, log) };
  }

  return {
    decoys: times.decoys,
    failing: access.failing,
    async verify(username, password, origin) {
      // The Basic scheme would split the name at its colon (RFC 7617 §2).
      const colon = format === "basic" && username.includes(":");
      if (!isAskable(username) || colon) return { result: "unknown" };
      const tooLong = Buffer.byteLength(password) > MAX_PASSWORD_BYTES;
      const shown = tooLong || !password.isWellFormed() ? "" : password;
      const verdict = await access.run(origin, (leftMs) => ask(username, shown, leftMs));
      // An empty, malformed, or overlong password is always wrong, even if the login service accepts an empty one.
      return verdict.result === "found" && shown === "" ? { result: "wrong" } : verdict;
    },
    connections: () =>
      [...Object.values(agent.sockets), ...Object.values(agent.freeSockets)].flat().length,
    // A nonexistent name: any response with a configured meaning is fine.
    examine: (timeoutMs) => failureOf(ask("sallyport-doctor", "no password", timeoutMs)),
    async reload(contentOf) {
      // Connections of the previous agent close once they are idle.
      if (trust.follow(contentOf)) agent = newAgent();
    },
    async close() {
      agent.destroy();
    },
  };
}

function userIn(text: string, username: string, settings: HttpSettings, log: Log): User {
  const value = text.trim() === "" ? undefined : parsed(text);
  const name = pointedAt(value, settings.subject) ?? username;
  if (typeof name !== "string" || !isAskable(name)) {
    throw new StoreUnavailable("the subject in the answer is not a valid name");
  }
  const listed = pointedAt(value, settings.groups) ?? [];
  if (!Array.isArray(listed)) throw new StoreUnavailable("the groups in the answer are not a list");
  return { name, groups: sendableGroups(listed, name, "http", log) };
}

function parsed(body: string): unknown {
  try {
    return parseStrictJson(body);
  } catch {
    throw new StoreUnavailable("the answer is not JSON");
  }
}

function questionOf(
  { url, format, fields }: HttpSettings,
  username: string,
  password: string,
): RemoteQuestion {
  const named = { [fields.username]: username, [fields.password]: password };
  const common = { accept: "application/json" };
  const question = { method: "POST", url } as const;
  if (format === "basic") {
    const pair = Buffer.from(`${username}:${password}`, "utf8").toString("base64");
    return { ...question, headers: { ...common, authorization: `Basic ${pair}` }, body: "" };
  }
  const [type, body] =
    format === "json"
      ? ["application/json", JSON.stringify(named)]
      : ["application/x-www-form-urlencoded", new URLSearchParams(named).toString()];
  return { ...question, headers: { ...common, "content-type": type }, body };
}
