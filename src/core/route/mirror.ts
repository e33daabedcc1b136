/** Copies of the requests of a route go to another upstream, whose answers nobody sees. */
export interface Mirror {
  /** Name of the upstream. */
  readonly upstream: string;
  /** How many of the requests, from 0 to 100. */
  readonly percent: number;
  /** The maximum size of a body that is copied, in bytes. */
  readonly bodyBytes: number;
}

/** What became of a copy: the `result` of `mirrored_requests_total`. */
export const MIRROR_RESULTS = [
  ...(["answered", "failed", "timeout"] as const),
  // Not sent.
  ...(["body_too_large", "body_too_slow", "body_incomplete", "no_connection", "memory"] as const),
] as const;
export type MirrorResult = (typeof MIRROR_RESULTS)[number];
