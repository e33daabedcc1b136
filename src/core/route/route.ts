import type { Authorizer } from "./authorizer.ts";
import type { GateRequest } from "../request/gate-request.ts";
import type { HeaderModifier } from "./header-modifier.ts";
import type { ClaimScalar } from "../request/identity.ts";
import type { ConcurrencyLimit } from "./concurrency.ts";
import type { Mirror } from "./mirror.ts";
import type { NetworkRule } from "./network-rule.ts";
import type { PathPattern } from "./path-pattern.ts";
import type { PathSpelling } from "../../lib/http/loose-path.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { TokenPlaces } from "../request/token-place.ts";

/** What a route requires of callers besides a token. `policy/requirements.ts` has the rules of each kind. */
export interface Requirements {
  readonly groups?: NamesRequirement;
  /** Scopes of the token. */
  readonly scopes?: NamesRequirement;
  /** Every line must hold. */
  readonly claims?: readonly ClaimRequirement[];
  /** The token is of one of these issuers. */
  readonly issuers?: readonly string[];
}

/** At least one of `any`, and every one of `all`. */
export interface NamesRequirement {
  readonly any?: readonly string[];
  readonly all?: readonly string[];
}

/** What one claim must be. A list must contain what a single value must be. */
interface ClaimRequirement {
  /** The name of the claim; `a.b` is `b` in the object `a`. */
  readonly claim: string;
  readonly any?: readonly ClaimScalar[];
  readonly all?: readonly ClaimScalar[];
  readonly equals?: ClaimScalar;
}

/** Why a request is sent again: no connection, a connection that was closed before the answer, or a status. */
export type RetryCause = "connect" | "stale" | "502" | "503" | "504";

/** What routes are chosen by. */
export type RouteQuery = Pick<GateRequest, "host" | "matchPath" | "method"> &
  Partial<Pick<GateRequest, "rawHeaders">>;

/** How the backend's view of a route differs from the client's. */
export interface RouteRewrite {
  readonly stripPrefix?: string;
  readonly addPrefix?: string;
  /** Whether answers are mapped back, where that is said; `mapsAnswers` of the route has the default, too. */
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
  /** Names in lower case and values that a request must have, each as its only field of the name. */
  readonly headers?: readonly (readonly [name: string, value: string])[];
  /** With `optional`, a request without a token passes without an identity; a bad token is refused. */
  readonly auth: "required" | "optional" | "none";
  /** Where tokens may be; left out, in `Authorization` alone. They are removed before forwarding. */
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
  /** Overrides the maximum body size of requests, in bytes. */
  readonly bodyBytes?: number;
  readonly rateLimit?: RateLimit;
  /** Left out: once, for `connect` and `stale`. */
  readonly retry?: { readonly attempts: number; readonly on: readonly RetryCause[] };
  /** Where copies of requests go. */
  readonly mirror?: Mirror;
  /** How paths may be spelled; left out, strictly. */
  readonly paths?: Exclude<PathSpelling, "strict">;
  readonly concurrency?: ConcurrencyLimit;
  readonly networks?: NetworkRule;
  /** In milliseconds; override those of the upstream. */
  readonly timeouts?: { readonly response?: number; readonly idle?: number };
  /** Removes `stripPrefix` from the canonical path, then prepends `addPrefix`. */
  readonly rewrite?: RouteRewrite;
  /** Addresses and cookie paths in answers are mapped back to those of the client. */
  readonly mapsAnswers?: true;
  /** The `Host` for the backend: that of the target, or a fixed one. Left out, it is the client's. */
  readonly hostHeader?: "target" | { readonly fixed: string };
  readonly requestHeaders?: HeaderModifier;
  readonly responseHeaders?: HeaderModifier;
  /** Who else is asked whether the caller may, by name. */
  readonly authorize?: string;
  /** The same, ready to be asked. */
  readonly authorizer?: Authorizer;
  /** Whether the backend gets a signed assertion about the caller. */
  readonly assertion?: boolean;
}
