import type { ClaimScalar } from "./request/identity.ts";
import type { TokenStep } from "./request/token-verifier.ts";

/** The request of a dry run: Sallyport explains it but does not forward it. */
export interface DryRunRequest {
  /** The head as it would arrive, one character per byte: request line, header fields, empty line. */
  readonly head: string;
  /** Whether it would arrive over TLS. */
  readonly secure: boolean;
  /** Address of the TCP peer. */
  readonly peer: string;
}

/** How a request would be handled, and why. Contains no token, signature, cookie or query. */
export interface Explanation {
  readonly verdict: ExplainedVerdict;
  /** Undefined if the request is ambiguous. */
  readonly request: ExplainedRequest | undefined;
  /** In matching order. */
  readonly routes: readonly ExplainedRoute[];
  /** Undefined if no token was examined. */
  readonly token: ExplainedToken | undefined;
  /** The requirements of the route, all of which the caller must meet. */
  readonly requirements: readonly ExplainedRequirement[];
  /** Undefined if the request would not be forwarded. */
  readonly backend: ExplainedBackend | undefined;
  /** Limitations: what the explanation does not take into account. */
  readonly notes: readonly string[];
}

export interface ExplainedVerdict {
  readonly outcome: "forwarded" | "answered" | "refused";
  /** The status of a refusal. */
  readonly status: number | undefined;
  /** The `reason` of a refusal in the access log. */
  readonly reason: string | undefined;
  /** A description of the error, if the reason is not specific enough. */
  readonly detail: string | undefined;
  /** On a route in monitor mode: why the request would be refused in enforce mode. */
  readonly wouldDeny: string | undefined;
  /**
   * The name of the route, or that of an endpoint of Sallyport's own, such as `authenticate`; `none` if neither
   * matches.
   */
  readonly route: string;
}

interface ExplainedRequest {
  readonly method: string;
  readonly host: string;
  /** The canonical path, which is forwarded. */
  readonly path: string;
  /** The path that routes are matched against. */
  readonly matchPath: string;
  readonly client: string;
  readonly peer: string;
  readonly peerTrusted: boolean;
  readonly secure: boolean;
  readonly protocol: "http" | "websocket";
}

export interface ExplainedRoute {
  readonly name: string;
  readonly hosts: readonly string[] | undefined;
  /** A prefix, `=` and an exact path, or `~` and a regular expression. */
  readonly path: string;
  readonly methods: readonly string[] | undefined;
  /** The first route that matches is taken; later routes are not tried. */
  readonly result: "taken" | "not tried" | "does not fit";
  /** The parts of the request that do not match. */
  readonly misfits: readonly ("host" | "path" | "method" | "header")[];
}

export interface ExplainedToken {
  readonly accepted: boolean;
  /** The place in the request where it was found, on a route with `tokenFrom`. */
  readonly place?: string;
  /** Why the token was refused. */
  readonly reason: string | undefined;
  readonly steps: readonly ExplainedStep[];
  readonly subject: string | undefined;
  readonly groups: readonly string[];
  readonly issuer: string | undefined;
  /** The time until it expires, in milliseconds. */
  readonly timeLeftMs: number | undefined;
}

export interface ExplainedStep {
  readonly step: TokenStep;
  /** `not checked`: a command verifies the token, and could not ask the running proxy, which may have revoked it. */
  readonly result: "ok" | "failed" | "not reached" | "not checked";
  readonly detail: string;
}

/** One requirement of a route. */
export interface ExplainedRequirement {
  /** Whether the caller needs one of the names, or every one. */
  readonly how: "one" | "every";
  /** What the names refer to: `group`, `scope`, `issuer`, `claim tenant`. */
  readonly what: string;
  readonly names: readonly ClaimScalar[];
  /** The names that the caller has. */
  readonly held: readonly ClaimScalar[];
  readonly met: boolean;
}

/** Times are in milliseconds, sizes in bytes. */
export interface ExplainedBackend {
  readonly upstream: string;
  readonly targets: readonly string[];
  /** As configured. */
  readonly protocol: string;
  /** The rewritten path, without the query. */
  readonly path: string;
  readonly queryBytes: number;
  readonly headers: {
    readonly added: readonly (readonly [name: string, value: string])[];
    /** Names only: values from a client may be secret. */
    readonly removed: readonly string[];
    readonly kept: readonly string[];
  };
  readonly timeouts: {
    readonly connect: number;
    readonly response: number;
    readonly idle: number;
    readonly queue: number;
  };
  /** How a target is chosen; undefined if there is only one. */
  readonly balance: string | undefined;
  readonly retry: { readonly attempts: number; readonly on: readonly string[] };
  /** The upstream that gets copies, and the percentage of requests that are copied. */
  readonly mirror: { readonly upstream: string; readonly percent: number } | undefined;
  readonly limits: {
    /** Undefined for no limit. */
    readonly bodyBytes: number | undefined;
    readonly connections: number;
    readonly queue: number;
    readonly rate:
      | {
          readonly by: "subject" | "address";
          readonly requests: number;
          readonly withinMs: number;
          readonly burst: number;
        }
      | undefined;
  };
}
