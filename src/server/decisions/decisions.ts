import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import { grpcTimeout, grpcTypeOf } from "../../core/request/grpc.ts";
import type { IncomingRequest, OutgoingResponse } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { foldedName, headerValues } from "../../lib/http/header-values.ts";
import type { Networks } from "../../lib/http/networks.ts";
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
  /** Whether a header, by its folded name, says who the caller is, or makes another request of it, to some backend. */
  readonly isForged: (folded: string) => boolean;
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
interface Grpc extends Pick<CheckOptions, "headersFor" | "isOfProxy"> {
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
/** The largest question over gRPC, in bytes. Envoy reads heads up to 60 KiB, and may add the beginning of the body. */
const CHECK_BYTES = 128 * 1_024;

/** What proxies call the parts of the original request. */
const METHODS = ["x-forwarded-method", "x-original-method"];
const [FORWARDED_METHOD = "", ORIGINAL_METHOD = ""] = METHODS;
const TARGETS = ["x-forwarded-uri", "x-original-uri"];
const [FORWARDED_URI = "", ORIGINAL_URI = ""] = TARGETS;
const HOST = "x-forwarded-host";
/** nginx's `$scheme://$http_host$request_uri`. */
const URL_FIELD = "x-original-url";

/** Fields about the message that asks, not about the request: no route can compare them. */
export const QUESTION_FIELDS: readonly string[] = [...METHODS, ...TARGETS, HOST, URL_FIELD];

/** Fields that a question over HTTP does not pass on: they are about the message that asks. */
const NOT_OF_THE_REQUEST: ReadonlySet<string> = new Set([
  ...QUESTION_FIELDS,
  ...["host", "transfer-encoding"],
]);

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
    const { url = "", headers } = message;
    const { length } = this.#path;
    if (!this.#options.http || url.slice(0, length).toLowerCase() !== this.#path.toLowerCase()) {
      return undefined;
    }
    // Otherwise the next question could be the rest of a body that was declared and never sent.
    const { "content-length": bytes = "0", "transfer-encoding": coding } = headers;
    if (bytes !== "0" || coding !== undefined) response.shouldKeepAlive = false;
    return {
      headers,
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
   * Returns the question in a call.
   *
   * @throws or rejects with GateError `network_denied` if the peer may not ask, `bad_request` or `body_too_large` for a call
   * without a question, `no_route` if it is none of gRPC.
   */
  async questionIn(
    { id, connection, rawHeaders }: GateRequest,
    { incoming, response, transfer, rules }: RequestContext,
  ): Promise<Question> {
    const { from, grpc, identityNames } = this.#options;
    if (!from.has(connection.peer)) throw stranger();
    const type = grpcTypeOf(incoming, incoming.headers["content-type"]);
    if (type === undefined || grpc === undefined) throw new GateError("no_route");
    const ms = grpcTimeout(rawHeaders);
    if (ms !== undefined) {
      const timer = setTimeout(() => {
        if (!response.headersSent && !response.destroyed) {
          interrupt(new GateError("deadline_exceeded"), response, rules.realm);
        }
      }, ms);
      response.once("close", () => clearTimeout(timer));
    }
    const body = await readBody({ incoming, response, transfer }, CHECK_BYTES, "body_too_large");
    const { module, headersFor, isOfProxy } = grpc;
    const check = await module;
    const read = (request: AskedRequest): GateRequest => this.#read(request, incoming, id);
    return check.checkQuestion(body, { read, identityNames, headersFor, isOfProxy });
  }

  /**
   * Returns the request that a question over HTTP is about.
   *
   * @throws GateError `network_denied` if the peer may not ask, `bad_request` if a part is missing, if two parts disagree, or if
   * the request has more than one reading.
   */
  #requestIn(question: GateRequest, message: IncomingRequest): GateRequest {
    if (!this.#options.from.has(question.connection.peer)) throw stranger();
    const { rawHeaders, id } = question;
    this.#refuseForged(message.rawHeaders);
    const { host, ...parts } = this.#partsOf(question, message.url ?? "");
    return this.#read({ ...parts, rawHeaders: aboutRequest(rawHeaders, host) }, message, id);
  }

  #read(
    { method, target, rawHeaders }: AskedRequest,
    { socket }: IncomingRequest,
    id: number,
  ): GateRequest {
    if (!TARGET.test(target)) throw ambiguous("target");
    const asked = { method, url: target, rawHeaders, httpVersion: "1.1", socket };
    const request = this.#options.intake(asked, id);
    if (!request.connection.peerTrusted) throw stranger();
    // The path that was decided cannot be made the path that is forwarded.
    if (request.path + request.query !== target) throw ambiguous("path");
    return request;
  }

  #yes(permit: Permit): Answer {
    const { requestId, rawHeaders } = permit.request;
    const identity = this.#options.identityOf(permit);
    for (let i = 0; i + 1 < identity.length; i += 2) {
      // Some proxies copy no empty field over that of the client.
      const isSent = headerValues(rawHeaders, identity[i]?.toLowerCase() ?? "").length > 0;
      if (identity[i + 1] === "" && isSent) throw ambiguous("header");
    }
    const fields = ["Content-Length", "0", "Cache-Control", "no-store", "X-Request-Id", requestId];
    return { status: 200, body: "", close: false, headers: [...fields, ...identity] };
  }

  #partsOf({ rawHeaders, method, authority }: GateRequest, url: string) {
    const original = originalUrl(rawHeaders);
    const methods = valuesOf(METHODS, rawHeaders);
    const has = (name: string): boolean => headerValues(rawHeaders, name).length > 0;
    const named = {
      method: agreed("header", methods),
      target: agreed("target", [...valuesOf(TARGETS, rawHeaders), ...(original?.target ?? [])]),
      host: agreed("host", [...headerValues(rawHeaders, HOST), ...(original?.host ?? [])]),
    };
    const behind = this.#behind(url);
    if (behind !== undefined) {
      // The message itself is the request, but for our path in front.
      if ((named.method ?? method) !== method) throw ambiguous("header");
      if ((named.host ?? authority) !== authority) throw ambiguous("host");
      if ((named.target ?? behind) !== behind) throw ambiguous("target");
      return { method, target: behind, host: authority };
    }
    const ways = [has(FORWARDED_URI), has(ORIGINAL_URI), original !== undefined];
    const [isForwarded, isOfNginx] = ways;
    const isComplete = isForwarded
      ? has(FORWARDED_METHOD) && has(HOST)
      : has(ORIGINAL_METHOD) && (!isOfNginx || (named.host ?? authority) === authority);
    // Of two ways, one may be the client's.
    if (ways.filter(Boolean).length > 1) throw ambiguous("target");
    if (named.target === undefined || named.method === undefined || !isComplete) {
      throw ambiguous("target");
    }
    return { method: named.method, target: named.target, host: named.host ?? authority };
  }

  /** The target behind our own path; undefined if there is none. @throws GateError `bad_request` if our path is spelled otherwise. */
  #behind(url: string): string | undefined {
    if (!url.startsWith(this.#path)) throw ambiguous("target");
    const behind = url.slice(this.#path.length);
    return behind.startsWith("/") ? behind : undefined;
  }

  /**
   * Refuses what would not reach a backend through us, but does through the proxy that asks: fields that identify the caller in
   * another spelling or for other products, fields that change the method or the path, and those that our policy drops.
   */
  #refuseForged(rawHeaders: readonly string[]): void {
    const { isForged, dropsUnderscores } = this.#options;
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = (rawHeaders[i] ?? "").toLowerCase();
      if (dropsUnderscores && name.includes("_")) throw new GateError("underscore_header");
      const folded = foldedName(name);
      const spelling = this.#spellings.get(folded);
      if (spelling === undefined ? isForged(folded) : spelling !== name) throw ambiguous("header");
    }
  }
}

function stranger(): GateError {
  return new GateError("network_denied", { reason: "network_denied" });
}

function valuesOf(names: readonly string[], rawHeaders: readonly string[]): string[] {
  return names.flatMap((name) => headerValues(rawHeaders, name));
}

/** Returns the value on which all agree; undefined if there is none. @throws GateError `bad_request` */
function agreed(
  what: "header" | "host" | "target",
  [first, ...others]: readonly string[],
): string | undefined {
  if (others.some((other) => other !== first)) throw ambiguous(what);
  return first;
}

/** @throws GateError `bad_request` */
function originalUrl(
  rawHeaders: readonly string[],
): { readonly host: string[]; readonly target: string[] } | undefined {
  const url = agreed("target", headerValues(rawHeaders, URL_FIELD));
  if (url === undefined) return undefined;
  const [, host, target] = ORIGINAL_URL.exec(url) ?? [];
  if (host === undefined || target === undefined) throw ambiguous("target");
  return { host: [host], target: [target] };
}

/** Returns the headers of the request, with its host. */
function aboutRequest(rawHeaders: readonly string[], host: string): string[] {
  const fields = host === "" ? [] : ["Host", host];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (!NOT_OF_THE_REQUEST.has(name.toLowerCase())) fields.push(name, rawHeaders[i + 1] ?? "");
  }
  return fields;
}
