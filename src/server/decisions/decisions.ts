import { GateError } from "../../core/request/errors.ts";
import type { GateRequest } from "../../core/request/gate-request.ts";
import type { IncomingRequest } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { headerValues } from "../../lib/http/header-values.ts";
import type { Answer } from "../request/gate.ts";
import { ambiguous, type Intake } from "../request/intake.ts";

export interface DecisionsOptions {
  /** The prefix of our own addresses. */
  readonly ownPath: string;
  /** Reads the request that a question is about. It trusts the proxies that may ask, and nobody else. */
  readonly intake: Intake;
  /** Returns the identity headers of a permitted request, names and values alternating: each of them, empty without a value. */
  readonly identityOf: (permit: Permit) => readonly string[];
}

/** What proxies call the parts of the original request. The first that is there counts; another one must say the same. */
const METHODS = ["x-forwarded-method", "x-original-method"];
const TARGETS = ["x-forwarded-uri", "x-original-uri"];
const HOSTS = ["x-forwarded-host"];
/** nginx's `$scheme://$http_host$request_uri`. */
const URL_FIELD = "x-original-url";

/** Fields about the message that asks, not about the one that it is about. */
const OF_THE_QUESTION: ReadonlySet<string> = new Set([
  ...METHODS,
  ...TARGETS,
  ...HOSTS,
  ...[URL_FIELD, "host", "content-length", "transfer-encoding", "expect", "te", "trailer"],
]);

const ORIGINAL_URL = /^https?:\/\/([^/?#]+)(\/.*)$/i;

/**
 * Answers other proxies whether a request may pass: nginx `auth_request`, Traefik ForwardAuth, Caddy `forward_auth`, Envoy's
 * `ext_authz` over HTTP, the Gateway API's ExternalAuth. The question becomes the request that it is about, which is then decided
 * like any other.
 */
export class Decisions {
  readonly #options: DecisionsOptions;
  readonly #path: string;

  constructor(options: DecisionsOptions) {
    this.#options = options;
    this.#path = `${options.ownPath}/decide`;
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
   * @throws GateError `network_denied` if the peer may not ask, `bad_request` if two parts of the question disagree, or if the
   * request that it is about has more than one reading.
   */
  requestIn(question: GateRequest, message: IncomingRequest): GateRequest {
    const { rawHeaders } = question;
    const original = originalUrl(rawHeaders);
    const method = named(METHODS, rawHeaders) ?? question.method;
    const target = agreed("target", [
      ...values(TARGETS, rawHeaders),
      ...(original === undefined ? [] : [original.target]),
      ...this.#behind(message.url ?? ""),
    ]);
    if (target === undefined || !target.startsWith("/")) throw ambiguous("target");
    const host = agreed("host", [
      ...values(HOSTS, rawHeaders),
      ...(original === undefined ? [] : [original.host]),
    ]);
    const request = this.#options.intake(
      {
        method,
        url: target,
        rawHeaders: aboutRequest(rawHeaders, host ?? question.authority),
        httpVersion: "1.1",
        socket: message.socket,
      },
      question.id,
    );
    if (!request.connection.peerTrusted) {
      throw new GateError("network_denied", { reason: "network_denied" });
    }
    // The path that was decided cannot be made the path that is forwarded.
    if (request.path + request.query !== target) throw ambiguous("path");
    return request;
  }

  /** Returns the answer for a request that may pass. */
  yes(permit: Permit): Answer {
    const { requestId } = permit.request;
    const fields = ["Content-Length", "0", "Cache-Control", "no-store", "X-Request-Id", requestId];
    const headers = [...fields, ...this.#options.identityOf(permit)];
    return { status: 200, body: "", close: false, headers };
  }

  /** The target behind our own path. @throws GateError `bad_request` if that is spelled in another way. */
  #behind(url: string): string[] {
    if (!url.startsWith(this.#path)) throw ambiguous("target");
    const behind = url.slice(this.#path.length);
    return behind.startsWith("/") ? [behind] : [];
  }
}

function values(names: readonly string[], rawHeaders: readonly string[]): string[] {
  return names.flatMap((name) => headerValues(rawHeaders, name));
}

function named(names: readonly string[], rawHeaders: readonly string[]): string | undefined {
  return agreed("header", values(names, rawHeaders));
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
): { readonly host: string; readonly target: string } | undefined {
  const url = agreed("target", headerValues(rawHeaders, URL_FIELD));
  if (url === undefined) return undefined;
  const [, host, target] = ORIGINAL_URL.exec(url) ?? [];
  if (host === undefined || target === undefined) throw ambiguous("target");
  return { host, target };
}

/** Returns the headers of the request, with its host. */
function aboutRequest(rawHeaders: readonly string[], host: string): string[] {
  const fields = host === "" ? [] : ["Host", host];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (!OF_THE_QUESTION.has(name.toLowerCase())) fields.push(name, rawHeaders[i + 1] ?? "");
  }
  return fields;
}
