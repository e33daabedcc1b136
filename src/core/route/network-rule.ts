/** The networks from which a route accepts requests. */
export interface NetworkRule {
  /** Allowed address ranges; undefined allows every network. */
  readonly allow?: readonly string[];
  /** Denied ranges; they take precedence over `allow`. */
  readonly deny?: readonly string[];
  admits(client: string): boolean;
}
