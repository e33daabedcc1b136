/** Which networks a route takes requests from. */
export interface NetworkRule {
  /** Address ranges; undefined for every network. */
  readonly allow?: readonly string[];
  /** Ranges that are refused, also where `allow` has them. */
  readonly deny?: readonly string[];
  admits(client: string): boolean;
}
