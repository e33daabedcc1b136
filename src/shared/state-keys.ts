/** The names of the keys that replicas share on the state server. */
export type StateKeys = ReturnType<typeof keysFor>;

/**
 * Returns the keys for a prefix. All are in one hash slot, so that a script can use several of them in a cluster,
 * too.
 */
export function keysFor(prefix: string) {
  const key = (name: string): string => `{${prefix}}${name}`;
  return {
    /** Written to check that the server accepts writes. */
    probe: key("probe"),
    /** A random value, set once: a different one means that the server was emptied. */
    mark: key("mark"),
    /** The mark up to which the server has been refilled with revocations. */
    filled: key("filled"),
    /** The replica that is refilling it. */
    filling: key("filling"),
    /** A stream of the events that replicas exchange. */
    events: key("events"),
    /** A sorted set of the revocations, by their end. */
    revocations: key("revocations"),
    /** The spending of one caller of a rate limit. */
    rate: (digest: string): string => key(`rate:${digest}`),
    /**
     * For one caller of a concurrency limit: a hash with the requests in flight of each replica, and a sorted set with
     * the time at which each replica reported them.
     */
    inFlight: (digest: string): readonly [counts: string, told: string] => [
      key(`inflight:${digest}`),
      key(`inflight:${digest}:told`),
    ],
  } as const;
}
