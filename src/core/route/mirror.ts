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
  ...(["answered", "failed", "timeout"] as const),
  // Reasons why a copy was not sent.
  ...(["body_too_large", "body_too_slow", "body_incomplete", "no_connection", "memory"] as const),
] as const;
export type MirrorResult = (typeof MIRROR_RESULTS)[number];
