import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { foldedName, headerValues } from "../../lib/http/header-values.ts";
import type { Networks } from "../../lib/http/networks.ts";
import type { Answer } from "../request/gate.ts";
import { ambiguous, type Intake } from "../request/intake.ts";

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
  /** Returns the identity headers of a permitted request, names and values alternating: each of them, empty without a value. */
  readonly identityOf: (permit: Permit) => readonly string[];
}

/** What proxies call the parts of the original request. */
const METHODS = ["x-forwarded-method", "x-original-method"];
const [FORWARDED_METHOD = "", ORIGINAL_METHOD = ""] = METHODS;
const TARGETS = ["x-forwarded-uri", "x-original-uri"];
const [FORWARDED_URI = ""] = TARGETS;
const HOST = "x-forwarded-host";
/** nginx's `$scheme://$http_host$request_uri`. */
const URL_FIELD = "x-original-url";

/** Fields about the message that asks, not about the request: no route can compare them. */
export const QUESTION_FIELDS: readonly string[] = [...METHODS, ...TARGETS, HOST, URL_FIELD];

const NOT_OF_THE_REQUEST = new Set([...QUESTION_FIELDS, "host", "transfer-encoding"]);

const ORIGINAL_URL = /^https?:\/\/([^/?#]+)(\/.*)$/i;
/** What a request line can hold (RFC 9112 §3.2). */
const TARGET = /^\/[\x21-\x7e]*$/;

/**
 * Answers other proxies whether a request may pass: nginx `auth_request`, Traefik ForwardAuth, Caddy `forward_auth`, Envoy's
 * `ext_authz` over HTTP, the Gateway API's ExternalAuth. The question becomes the request that it is about, which is then decided
 * like any other.
 *
 * A part that a proxy does not set is the client's, if the proxy passes it on. So each way to ask needs all of its parts, and
 * whatever else is there must say the same.
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

  /** Whether a request is a question. */
  covers({ matchPath }: GateRequest): boolean {
    const { length } = this.#path;
    return (
      matchPath.startsWith(this.#path) && (matchPath.length === length || matchPath[length] === "/")
    );
  }

  /**
   * Returns the request that a question is about.
   *
   * @throws GateError `network_denied` if the peer may not ask, `bad_request` if a part is missing, if two parts disagree, or if
   * the request has more than one reading.
   */
  requestIn(question: GateRequest, message: IncomingRequest): GateRequest {
    if (!this.#options.from.has(question.connection.peer)) throw stranger();
    const { rawHeaders } = question;
    this.#refuseAliases(rawHeaders);
    const { method, target, host } = this.#partsOf(question, message.url ?? "");
    if (!TARGET.test(target)) throw ambiguous("target");
    const request = this.#options.intake(
      {
        method,
        url: target,
        rawHeaders: aboutRequest(rawHeaders, host),
        httpVersion: "1.1",
        socket: message.socket,
      },
      question.id,
    );
    if (!request.connection.peerTrusted) throw stranger();
    // The path that was decided cannot be made the path that is forwarded.
    if (request.path + request.query !== target) throw ambiguous("path");
    return request;
  }

  /** Returns the answer for a request that may pass. @throws GateError `bad_request` if the client's own identity could stay. */
  yes(permit: Permit): Answer {
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
    const isComplete = has(FORWARDED_URI)
      ? has(FORWARDED_METHOD) && has(HOST)
      : has(ORIGINAL_METHOD) && (original !== undefined || (named.host ?? authority) === authority);
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

  /** Refuses another spelling of an identity header: the proxy overwrites only one, and backends may read both as the same. */
  #refuseAliases(rawHeaders: readonly string[]): void {
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i] ?? "";
      const spelling = this.#spellings.get(foldedName(name));
      if (spelling !== undefined && spelling !== name.toLowerCase()) throw ambiguous("header");
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
