/** The names of the keys that replicas share on the state server. */
export interface StateKeys {
  /** Written to check that the server accepts writes. */
  readonly probe: string;
  /** A random value, set once: a different one means that the server was emptied. */
  readonly mark: string;
  /** The mark up to which the server has been refilled with revocations. */
  readonly filled: string;
  /** The replica that is refilling it. */
  readonly filling: string;
  /** A stream of the events that replicas exchange. */
  readonly events: string;
  /** A sorted set of the revocations, by their end. */
  readonly revocations: string;
  /** The spending of one caller of a rate limit. */
  rate(digest: string): string;
  /**
   * For one caller of a concurrency limit: a hash with the requests in flight of each replica, and a sorted set with
   * the time at which each replica reported them.
   */
  inFlight(digest: string): readonly [counts: string, told: string];
}

/**
 * Returns the keys for a prefix. All are in one hash slot, so that a script can use several of them in a cluster,
 * too.
 */
export function keysFor(prefix: string): StateKeys {
  const key = (name: string): string => `{${prefix}}${name}`;
  return {
    ...{ probe: key("probe"), mark: key("mark"), filled: key("filled"), filling: key("filling") },
    events: key("events"),
    revocations: key("revocations"),
    rate: (digest) => key(`rate:${digest}`),
    inFlight: (digest) => [key(`inflight:${digest}`), key(`inflight:${digest}:told`)],
  };
}
