import type { ConcurrencyLimit } from "../../policy/concurrency/concurrency-limiter.ts";
import type { NetworkRule, Requirements } from "../../policy/authorize.ts";
import type { RateLimit } from "../../policy/rates/rate-limiter.ts";
import type { RemoteAuthorizer } from "../../policy/remote/remote-authorizer.ts";
import type { HeaderModifier } from "../../upstream/headers/header-changes.ts";
import type { GateRequest } from "../request/gate-request.ts";
import type { PathSpelling } from "../../lib/http/path/canonical-path.ts";
import type { TokenPlaces } from "../request/token-place.ts";
import { Automaton, commonText } from "../../lib/automaton/automaton.ts";
import { parseExpression } from "../../lib/automaton/expression.ts";

/** Copies requests of a route to another upstream, whose responses are discarded. */
export interface Mirror {
  /** Name of the upstream. */
  readonly upstream: string;
  /** The percentage of requests that are copied, from 0 to 100. */
  readonly percent: number;
  /** The maximum size of the body of a copied request, in bytes. */
  readonly bodyBytes: number;
}

/** The fate of a copy: the `result` of `mirrored_requests_total`. */
export const MIRROR_RESULTS = [
  "answered",
  "failed",
  "timeout",
  // Reasons why a copy was not sent.
  "body_too_large",
  "body_too_slow",
  "body_incomplete",
  "no_connection",
  "memory",
] as const;
export type MirrorResult = (typeof MIRROR_RESULTS)[number];

/**
 * The paths that a route matches. A prefix matches on segment boundaries; a regular expression matches the whole
 * path.
 */
export type PathPattern =
  | { readonly prefix: string }
  | { readonly exact: string }
  | { readonly regex: PathExpression };

/** A regular expression for paths, compiled when it is first needed. */
export class PathExpression {
  readonly text: string;
  #automaton: Automaton | undefined;
  #beginning: string | undefined;

  constructor(text: string) {
    this.text = text;
  }

  /** @throws ExpressionError */
  get automaton(): Automaton {
    return (this.#automaton ??= new Automaton(parseExpression(this.text)));
  }

  /** The prefix that all matching paths share. */
  get beginning(): string {
    return (this.#beginning ??= this.automaton.beginning);
  }

  /** A path that matches. */
  get sample(): string {
    return commonText([this.automaton], { needed: [0], wanted: () => true }) ?? this.beginning;
  }

  toJSON(): string {
    return this.text;
  }
}

/** Returns a prefix, `=` and an exact path, or `~` and a regular expression. */
export function pathWords(path: PathPattern): string {
  if ("exact" in path) return `=${path.exact}`;
  return "regex" in path ? `~${path.regex.text}` : path.prefix;
}

/** Returns the prefix that all paths of a pattern share. */
export function beginningOf(path: PathPattern): string {
  if ("exact" in path) return path.exact;
  return "regex" in path ? path.regex.beginning : path.prefix;
}

/** Why a request is retried: no connection, a connection that was closed before the response, or a status. */
export type RetryCause = "connect" | "stale" | "502" | "503" | "504";

/** The parts of a request that determine its route. */
export type RouteQuery = Pick<GateRequest, "host" | "matchPath" | "method"> &
  Partial<Pick<GateRequest, "rawHeaders">>;

/** How the backend's view of a route differs from the client's. */
export interface RouteRewrite {
  readonly stripPrefix?: string;
  readonly addPrefix?: string;
  /** Whether responses are mapped back, if configured. `mapsAnswers` of the route also includes the default. */
  readonly responses?: boolean;
}

/** One row of the route table, as configured. */
export interface Route {
  /** The label in metrics and logs. */
  readonly name: string;
  /** Host names in lower case; `*.example.com` matches any one label; undefined matches every host. */
  readonly hosts?: readonly string[];
  readonly path: PathPattern;
  /** In upper case; undefined matches every method. */
  readonly methods?: readonly string[];
  /** Names, in lower case, and values of required fields. The request must have exactly one field of each name, with this value. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /**
   * With `optional`, a request without a token passes without an identity; an invalid token is refused. With `certificate`, the
   * verified certificate of the connection is the caller, and no token is looked at.
   */
  readonly auth: "required" | "optional" | "none" | "certificate";
  /** The places of tokens; default: only `Authorization`. Sallyport removes tokens from them before forwarding. */
  readonly tokenFrom?: TokenPlaces;
  /**
   * `monitor` refuses nothing: requests that would be refused are forwarded without identity and counted. Default:
   * `enforce`.
   */
  readonly mode?: "enforce" | "monitor";
  readonly require?: Requirements;
  /** Name of the upstream. */
  readonly upstream: string;
  readonly forwardAuthorization: "strip" | "keep";
  /** Maximum body size of requests in bytes: the route's own or `server.limits.bodyBytes`; Infinity for no limit. */
  readonly bodyBytes: number;
  readonly rateLimit?: RateLimit;
  /** Default: one retry, for `connect` and `stale`. */
  readonly retry?: { readonly attempts: number; readonly on: readonly RetryCause[] };
  /** The destination of copies of requests. */
  readonly mirror?: Mirror;
  /** The accepted spelling of paths; default: strict. */
  readonly paths?: Exclude<PathSpelling, "strict">;
  readonly concurrency?: ConcurrencyLimit;
  readonly networks?: NetworkRule;
  /** Timeouts in milliseconds that override those of the upstream. */
  readonly timeouts?: { readonly response?: number; readonly idle?: number };
  /** Removes `stripPrefix` from the canonical path, then prepends `addPrefix`. */
  readonly rewrite?: RouteRewrite;
  /** Whether addresses and cookie paths in responses are mapped back to the client's view. */
  readonly mapsAnswers?: true;
  /** The `Host` for the backend: that of the target, or a fixed one. Default: the client's. */
  readonly hostHeader?: "target" | { readonly fixed: string };
  readonly requestHeaders?: HeaderModifier;
  readonly responseHeaders?: HeaderModifier;
  /** The name of the entry in `authorization` that also decides whether the caller may make the request. */
  readonly authorize?: string;
  /** The client of this entry. */
  readonly authorizer?: RemoteAuthorizer;
  /** Whether the backend gets a signed assertion of the caller's identity. */
  readonly assertion?: boolean;
}
