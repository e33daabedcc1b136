/**
 * A warning that a request, similar to those of a protected route, matches a route that admits callers without a token.
 */
export interface RouteWarning {
  /** The protected route. */
  readonly route: string;
  readonly message: string;
  readonly hint: string;
}

/** Represents every host that no route names (RFC 6761 §6.4). */
export const ANOTHER_HOST = "another.invalid";
