/** The names under which the state server keeps what replicas share. */
export interface StateKeys {
  /** Whether the server takes writes. */
  readonly probe: string;
  /** Differs once the server was emptied. */
  readonly mark: string;
  /** The mark up to which the server has been refilled with revocations. */
  readonly filled: string;
  /** The replica that is refilling it. */
  readonly filling: string;
  /** A stream of what replicas tell each other. */
  readonly events: string;
  /** A sorted set of what is revoked, by its end. */
  readonly revocations: string;
  /** What one caller has spent of one rate limit. */
  rate(digest: string): string;
  /** A hash of what each replica has in flight of one caller of a concurrency limit, and when each told it, a sorted set. */
  inFlight(digest: string): readonly [counts: string, told: string];
}

/** All in one hash slot, so that scripts may use several of them in a cluster, too. */
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
