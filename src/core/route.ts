import type { RateLimit } from "./rate-limit.ts";

/** Which groups a caller needs: one of `any`, and every one of `all`. */
export interface GroupRequirement {
  readonly any?: readonly string[];
  readonly all?: readonly string[];
}

/** One row of the route table, as the configuration gives it. */
export interface Route {
  /** The label in metrics and logs. */
  readonly name: string;
  /** Host names in lower case, `*.example.com` for any one label; undefined for every host. */
  readonly hosts?: readonly string[];
  /** Matched on segment boundaries, or as a whole when `exact`. */
  readonly path: { readonly prefix: string } | { readonly exact: string };
  /** Upper case; undefined for every method. */
  readonly methods?: readonly string[];
  readonly auth: "required" | "none";
  /** With `monitor` nobody is refused: who would be goes on without identity, and is counted. `enforce` when left out. */
  readonly mode?: "enforce" | "monitor";
  readonly groups?: GroupRequirement;
  /** Name of the upstream. */
  readonly upstream: string;
  readonly forwardAuthorization: "strip" | "keep";
  /** The largest body of a request in bytes, where it is another than everywhere. */
  readonly bodyBytes?: number;
  readonly rateLimit?: RateLimit;
  /** `stripPrefix` is removed from the canonical path first, then `addPrefix` put before it. */
  readonly rewrite?: { readonly stripPrefix?: string; readonly addPrefix?: string };
}
