import { GateError } from "../../core/request/errors.ts";
import type { ClientConnection, GateRequest } from "../../core/request/gate-request.ts";
import { grpcTimeout, grpcTypeOf } from "../../core/request/grpc.ts";
import type { IncomingRequest, OutgoingResponse } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { foldedName, headerValues } from "../../lib/http/header-values.ts";
import type { Networks } from "../../lib/http/networks.ts";
import { rememberedByName } from "../../lib/text/by-name.ts";
import { declaresBody } from "../listener/discard-body.ts";
import { interrupt } from "../listener/client-error.ts";
import type { Answer, Question } from "../request/gate.ts";
import { ambiguous, type Intake } from "../request/intake.ts";
import { readBody } from "../request/read-body.ts";
import type { RequestContext } from "../request/request-context.ts";
import type { CheckOptions, checkQuestion } from "./envoy-check.ts";

export interface DecisionsOptions {
  /** The prefix of our own addresses. */
  readonly ownPath: string;
  /** The networks of the proxies that may ask. */
  readonly from: Networks;
  /**
   * Reads the request that a question is about. It believes the proxies that may ask, and those in front of them; without an
   * address of the client, it throws.
   */
  readonly intake: Intake;
  /** The names of the identity headers. */
  readonly identityNames: readonly string[];
  /** Whether a header, by its name in lower case, says who the caller is, or makes another request of it, to some backend. */
  readonly isForged: (name: string) => boolean;
  /** Whether headers with an underscore in their names do not reach a backend through us. */
  readonly dropsUnderscores: boolean;
  /** Returns the identity headers of a permitted request, names and values alternating: each of them, empty without a value. */
  readonly identityOf: (permit: Permit) => readonly string[];
  /** Whether {ownPath}/decide answers. */
  readonly http: boolean;
  /** What answers over gRPC; undefined if nothing does. */
  readonly grpc: Grpc | undefined;
}

/** What answers `Check` calls. */
interface Grpc extends Omit<CheckOptions, "read"> {
  /** Loaded only if it is needed, with the library for protobuf. */
  readonly module: Promise<{ readonly checkQuestion: typeof checkQuestion }>;
}

/** A request that a question is about. */
export interface AskedRequest {
  readonly method: string;
  readonly target: string;
  /** Names and values, alternating, with the host. */
  readonly rawHeaders: string[];
}

/** The call of Envoy's ext_authz over gRPC. */
const CHECK_PATH = "/envoy.service.auth.v3.Authorization/Check";
/** The media types of messages in protobuf. */
const PROTOBUF = /^application\/grpc(?:\+proto)?$/i;
/** The largest question over gRPC, in bytes. Envoy reads heads up to 60 KiB, and may add the beginning of the body. */
const CHECK_BYTES = 128 * 1_024;

/** What proxies call the parts of the original request. `x-original-url` is nginx's `$scheme://$http_host$request_uri`. */
const QUESTION = [
  "x-forwarded-method",
  "x-forwarded-uri",
  "x-forwarded-host",
  "x-original-method",
  "x-original-uri",
  "x-original-url",
] as const;

type Part = (typeof QUESTION)[number];

/** Fields about the message that asks, not about the request: no route can compare them. */
export const QUESTION_FIELDS: readonly string[] = QUESTION;

/** Fields that a question does not pass on: they are about the message that asks. */
export const NOT_OF_THE_REQUEST: ReadonlySet<string> = new Set([
  ...QUESTION,
  "host",
  "transfer-encoding",
]);

/** What a field of a question is. */
type Kind = "of-request" | "of-message" | "forged" | "dropped" | Part;

const ORIGINAL_URL = /^https?:\/\/([^/?#]+)(\/.*)$/i;
/** What a request line can hold (RFC 9112 §3.2). */
const TARGET = /^\/[\x21-\x7e]*$/;

/**
 * Answers other proxies whether a request may pass: nginx `auth_request`, Traefik ForwardAuth, Caddy `forward_auth`, Envoy's
 * `ext_authz` over HTTP, the Gateway API's ExternalAuth. The question becomes the request that it is about, which is then decided
 * like any other.
 *
 * A part that a proxy does not set is the client's, if the proxy passes it on. So each way to ask needs all of its parts, and
 * whatever else is there must say the same. Two ways at once are refused.
 */
export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #path: string;
  /** The spelling of each identity header, by its folded name. */
  readonly #spellings: ReadonlyMap<string, string>;
  readonly #kindOf = rememberedByName((name) => this.#classify(name.toLowerCase()));
  readonly #asking = new WeakMap<ClientConnection, boolean>();

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#path = `${options.ownPath}/decide`;
    this.#spellings = new Map(
      options.identityNames.map((name) => [foldedName(name), name.toLowerCase()]),
    );
  }

  /**
   * Returns the question over HTTP in a message whose target begins with our path, even if nothing else of it is known. Undefined
   * for any other message.
   */
  questionOf(message: IncomingRequest, response: OutgoingResponse): Question | undefined {
    const { url = "" } = message;
    if (!this.#options.http) return undefined;
    const path = this.#path;
    const isOurs =
      url.startsWith(path) || url.slice(0, path.length).toLowerCase() === path.toLowerCase();
    if (!isOurs) return undefined;
    // Otherwise the next question could be the rest of a body that was declared and never sent.
    if (declaresBody(message)) response.shouldKeepAlive = false;
    return {
      get headers() {
        return message.headers;
      },
      subject: (asks) => this.#requestIn(asks, message),
      yes: (permit) => this.#yes(permit),
      no: (answer) => answer,
    };
  }

  /** Whether a message is a question over gRPC. */
  isCalled({ matchPath }: GateRequest): boolean {
    return this.#options.grpc !== undefined && matchPath === CHECK_PATH;
  }

  /**
   * Reads a call, within the asker's deadline.
   *
   * @throws or rejects with GateError `network_denied` if the peer may not ask, `no_route` if it is none of gRPC, `bad_request`
   * if the client leaves.
   * @returns the message, or what is wrong with it.
   */
  async readCall(
    { connection, rawHeaders }: GateRequest,
    { incoming, response, transfer, rules }: RequestContext,
  ): Promise<Buffer | GateError> {
    if (!this.#mayAsk(connection)) throw new GateError("network_denied");
    const type = grpcTypeOf(incoming, incoming.headers["content-type"]);
    if (type === undefined || !PROTOBUF.test(type)) throw new GateError("no_route");
    const ms = grpcTimeout(rawHeaders);
    if (ms !== undefined) {
      const timer = setTimeout(() => {
        if (!response.headersSent && !response.destroyed) {
          interrupt(new GateError("deadline_exceeded"), response, rules.realm);
        }
      }, ms);
      response.once("close", () => clearTimeout(timer));
    }
    try {
      const body = await readBody({ incoming, response, transfer }, CHECK_BYTES, "body_too_large");
      // What is read of it takes some three times as much, until it is answered.
      transfer.holder = { bufferedBytes: 3 * body.length };
      return body;
    } catch (error) {
      if (error instanceof GateError && error.code === "body_too_large") return error;
      throw error;
    }
  }

  /** Returns the question in a call that was read. @throws GateError `no_route` or `network_denied` if it may not be asked now. */
  async questionIn(
    { id, connection }: GateRequest,
    body: Buffer | GateError,
    incoming: IncomingRequest,
  ): Promise<Question> {
    const { grpc } = this.#options;
    if (grpc === undefined) throw new GateError("no_route");
    if (!this.#mayAsk(connection)) throw new GateError("network_denied");
    const { module, ...options } = grpc;
    const check = await module;
    const read = (request: AskedRequest): GateRequest => this.#read(request, incoming, id);
    return check.checkQuestion(body, { ...options, read });
  }

  /**
   * Returns the request that a question over HTTP is about.
   *
   * @throws GateError `network_denied` if the peer may not ask, `bad_request` if a part is missing, if two parts disagree, or if
   * the request has more than one reading.
   */
  #requestIn(question: GateRequest, message: IncomingRequest): GateRequest {
    if (!this.#mayAsk(question.connection)) throw new GateError("network_denied");
    const said = new Map<Part, string>();
    const fields: string[] = [];
    const { rawHeaders } = message;
    for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] ?? "";
      const value = rawHeaders[i + 1] ?? "";
      const kind = this.#kindOf(name);
      if (kind === "of-request") fields.push(name, value);
      else if (kind === "forged") throw ambiguous("header");
      else if (kind === "dropped") throw new GateError("underscore_header");
      else if (kind !== "of-message") {
        if ((said.get(kind) ?? value) !== value) throw ambiguous("header");
        said.set(kind, value);
      }
    }
    const { host, ...parts } = this.#partsOf(question, message.url ?? "", said);
    if (host !== "") fields.push("Host", host);
    return this.#read({ ...parts, rawHeaders: fields }, message, question.id);
  }

  #read(
    { method, target, rawHeaders }: AskedRequest,
    { socket }: IncomingRequest,
    id: number,
  ): GateRequest {
    if (!TARGET.test(target)) throw ambiguous("target");
    const asked = { method, url: target, rawHeaders, httpVersion: "1.1", socket };
    const request = this.#options.intake(asked, id);
    if (!request.connection.peerTrusted) throw new GateError("network_denied");
    // The path that was decided cannot be made the path that is forwarded.
    if (request.path + request.query !== target) throw ambiguous("path");
    return request;
  }

  /** Returns the answer for a request that may pass. @throws GateError `bad_request` if the client's own identity could stay. */
  #yes(permit: Permit): Answer {
    const { requestId, rawHeaders } = permit.request;
    const identity = this.#options.identityOf(permit);
    for (let i = 0; i + 1 < identity.length; i += 2) {
      // Some proxies copy no empty field over that of the client.
      if (identity[i + 1] !== "") continue;
      const isSent = headerValues(rawHeaders, identity[i]?.toLowerCase() ?? "").length > 0;
      if (isSent) throw ambiguous("header");
    }
    const fields = ["Content-Length", "0", "Cache-Control", "no-store", "X-Request-Id", requestId];
    return { status: 200, body: "", headers: [...fields, ...identity] };
  }

  #partsOf(
    { method, authority }: GateRequest,
    url: string,
    said: ReadonlyMap<Part, string>,
  ): Pick<AskedRequest, "method" | "target"> & { readonly host: string } {
    const written = said.get("x-original-url");
    const original = written === undefined ? undefined : ORIGINAL_URL.exec(written);
    if (original === null) throw ambiguous("target");
    const [, urlHost, urlTarget] = original ?? [];
    const [forwarded, ofNginx] = [said.get("x-forwarded-uri"), said.get("x-original-uri")];
    const named = {
      method: agreed("header", said.get("x-forwarded-method"), said.get("x-original-method")),
      target: agreed("target", agreed("target", forwarded, ofNginx), urlTarget),
      host: agreed("host", said.get("x-forwarded-host"), urlHost),
    };
    const behind = this.#behind(url);
    if (behind !== undefined) {
      // The message itself is the request, but for our path in front.
      if ((named.method ?? method) !== method) throw ambiguous("header");
      if ((named.host ?? authority) !== authority) throw ambiguous("host");
      if ((named.target ?? behind) !== behind) throw ambiguous("target");
      return { method, target: behind, host: authority };
    }
    const ways = [forwarded, ofNginx, urlTarget].filter((target) => target !== undefined);
    const isComplete =
      forwarded === undefined
        ? said.has("x-original-method") &&
          (ofNginx === undefined || (named.host ?? authority) === authority)
        : said.has("x-forwarded-method") && said.has("x-forwarded-host");
    // Of two ways, one may be the client's.
    if (named.method === undefined || named.target === undefined || !isComplete) {
      throw ambiguous("target");
    }
    if (ways.length > 1) throw ambiguous("target");
    return { method: named.method, target: named.target, host: named.host ?? authority };
  }

  /** The target behind our own path; undefined if there is none. @throws GateError `bad_request` if our path is spelled otherwise. */
  #behind(url: string): string | undefined {
    if (!url.startsWith(this.#path)) throw ambiguous("target");
    const behind = url.slice(this.#path.length);
    return behind.startsWith("/") ? behind : undefined;
  }

  /** Whether the peer of a connection may ask. */
  #mayAsk(connection: ClientConnection): boolean {
    const known = this.#asking.get(connection);
    if (known !== undefined) return known;
    const may = this.#options.from.has(connection.peer);
    this.#asking.set(connection, may);
    return may;
  }

  /**
   * Finds what would not reach a backend through us, but does through the proxy that asks: fields that identify the caller in
   * another spelling or for other products, fields that change the method or the path, and those that our policy drops.
   */
  #classify(name: string): Kind {
    const { isForged, dropsUnderscores } = this.#options;
    const part = QUESTION.find((each) => each === name);
    if (part !== undefined) return part;
    if (NOT_OF_THE_REQUEST.has(name)) return "of-message";
    if (dropsUnderscores && name.includes("_")) return "dropped";
    const spelling = this.#spellings.get(foldedName(name));
    const isOther = spelling === undefined ? isForged(name) : spelling !== name;
    return isOther ? "forged" : "of-request";
  }
}

/** Returns the value that is there, on which both agree. @throws GateError `bad_request` */
function agreed(
  what: "header" | "host" | "target",
  one: string | undefined,
  other: string | undefined,
): string | undefined {
  if (one !== undefined && other !== undefined && one !== other) throw ambiguous(what);
  return one ?? other;
}
