import { isIP, type LookupFunction } from "node:net";
import { lookupFor, WatchedName } from "../resolve/lookup.ts";
import { Target } from "./target.ts";
import { addressOf, originOf, type TargetOrigin } from "./target-origin.ts";
import type { ResolveOptions, UpstreamEvents, UpstreamOptions } from "./upstreams.ts";

/** Returns a `lookup` function that queries the DNS servers of an upstream; undefined if the system resolves its names. */
function lookupFunction(options: ResolveOptions | undefined): LookupFunction | undefined {
  if (options?.servers === undefined) return undefined;
  const lookup = lookupFor(options);
  const respond = async (
    ...[name, { all }, callback]: Parameters<LookupFunction>
  ): Promise<void> => {
    const addresses = await lookup(name).then(
      ({ addresses: each }) => each,
      () => [],
    );
    const found = addresses.map((address) => ({ address, family: isIP(address) }));
    const [first] = found;
    if (first === undefined) callback(notFound(name), "");
    else if (all === true) callback(null, found);
    else callback(null, first.address, first.family);
  };
  return (name, options, callback) => void respond(name, options, callback);
}

function notFound(name: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`no address of ${name}`), { code: "ENOTFOUND" });
}

interface ListEvents {
  /** A target was added. @param isFirst whether its name had no known address before. */
  came(target: Target, isFirst: boolean): void;
  /** A target was removed, and takes no more requests. */
  left(target: Target): void;
}

/** One entry of `targets`: an address, or a name with its current addresses. */
interface Row {
  readonly origin: TargetOrigin;
  readonly weight: number | undefined;
  readonly name: WatchedName | undefined;
  targets: readonly Target[];
}

/** The targets of an upstream: the addresses in the configuration, and those to which its names resolve. */
export class TargetList {
  /** In the order of the configuration. The array stays the same. */
  readonly targets: Target[] = [];
  readonly #options: UpstreamOptions;
  readonly #events: ListEvents;
  readonly #rows: readonly Row[];
  /** Removed targets that still have requests in flight. */
  readonly #leaving = new Set<Target>();
  readonly #closing = new Set<Promise<void>>();

  constructor(options: UpstreamOptions, observer: UpstreamEvents | undefined, events: ListEvents) {
    this.#options = options;
    this.#events = events;
    const { weights, tls, resolve } = options;
    this.#rows = options.targets.map((address, index) => {
      const origin = originOf(address, tls);
      const weight = weights?.[index];
      if (resolve === undefined || !hasName(origin)) {
        const target = new Target(address, origin, options, weight);
        return { origin, weight, name: undefined, targets: [target] };
      }
      const name = new WatchedName(origin.hostname, resolve, {
        changed: (addresses) => {
          this.#resolved(row, addresses);
          observer?.targetResolved(options.name, address, addresses);
        },
        lookedUp: (fault) => observer?.targetLookedUp(options.name, address, fault),
      });
      const row: Row = { origin, weight, name, targets: [] };
      return row;
    });
    this.#arrange();
  }

  /** Requests in flight at removed targets. */
  get leaving(): number {
    let requests = 0;
    for (const { inFlight } of this.#leaving) requests += inFlight;
    return requests;
  }

  /** Whether every name has been looked up. */
  get isAnswered(): boolean {
    return this.#rows.every(({ name }) => name?.answered !== false);
  }

  /** Starts to resolve names, until `close`. */
  start(): void {
    for (const { name } of this.#rows) name?.start();
  }

  /** A removed target has one request fewer. */
  released(target: Target): void {
    if (target.inFlight > 0 || !this.#leaving.delete(target)) return;
    const closed = target.pool.close().finally(() => this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  /** Closes all connections once their requests have finished. */
  async close(): Promise<void> {
    for (const { name } of this.#rows) name?.stop();
    const all = [...this.targets, ...this.#leaving].map((target) => target.pool.close());
    await Promise.all([...all, ...this.#closing]);
  }

  #resolved(row: Row, addresses: readonly string[]): void {
    const { origin, weight, targets: before } = row;
    const added: Target[] = [];
    row.targets = addresses.map((address) => {
      const known = before.find((target) => target.origin.hostname === address);
      if (known !== undefined) return known;
      // Certificate and `Host` stay those of the name.
      const at = { ...origin, hostname: address };
      const target = new Target(addressOf(at), at, this.#options, weight);
      added.push(target);
      return target;
    });
    const removed = before.filter((target) => !row.targets.includes(target));
    this.#arrange();
    for (const target of removed) {
      target.gone = true;
      this.#leaving.add(target);
      this.#events.left(target);
      this.released(target);
    }
    for (const target of added) this.#events.came(target, before.length === 0);
  }

  #arrange(): void {
    this.targets.splice(0, Infinity, ...this.#rows.flatMap(({ targets }) => targets));
  }
}

/** Returns the origins of all `targets` of an upstream, without resolving names. */
export function originsOf(upstream: Pick<UpstreamOptions, "targets" | "tls" | "resolve">) {
  const lookup = lookupFunction(upstream.resolve);
  return upstream.targets.map((address): TargetOrigin => {
    const origin = originOf(address, upstream.tls);
    return lookup === undefined ? origin : { ...origin, lookup };
  });
}

/** Returns the first of them, which gets all queries that belong to no request. */
export function firstOriginOf(upstream: Parameters<typeof originsOf>[0]): TargetOrigin {
  const [origin] = originsOf(upstream);
  if (origin === undefined) throw new TypeError("an upstream has a target");
  return origin;
}

function hasName({ hostname, socketPath }: TargetOrigin): boolean {
  return socketPath === undefined && isIP(hostname) === 0;
}
