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
  readonly groups?: GroupRequirement;
  /** Name of the upstream. */
  readonly upstream: string;
  readonly forwardAuthorization: "strip" | "keep";
  /** `stripPrefix` is removed from the canonical path first, then `addPrefix` put before it. */
  readonly rewrite?: { readonly stripPrefix?: string; readonly addPrefix?: string };
}
