import type { RateLimit } from "./rate-limit.ts";

/** What a route requires of callers besides a token. `policy/requirements.ts` has the rules of each kind. */
export interface Requirements {
  /** At least one of `any`, and every one of `all`. */
  readonly groups?: { readonly any?: readonly string[]; readonly all?: readonly string[] };
}

/** One row of the route table, as configured. */
export interface Route {
  /** The label in metrics and logs. */
  readonly name: string;
  /** Host names in lower case; `*.example.com` matches any one label; undefined matches every host. */
  readonly hosts?: readonly string[];
  /** A prefix matches on segment boundaries. */
  readonly path: { readonly prefix: string } | { readonly exact: string };
  /** In upper case; undefined matches every method. */
  readonly methods?: readonly string[];
  readonly auth: "required" | "none";
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
  /** Removes `stripPrefix` from the canonical path, then prepends `addPrefix`. */
  readonly rewrite?: { readonly stripPrefix?: string; readonly addPrefix?: string };
}
