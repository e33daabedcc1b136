import type { RecordWithTtl } from "node:dns";
import { lookup as lookupBySystem, Resolver } from "node:dns/promises";
import { isIPv4 } from "node:net";
import type { ResolveOptions } from "../pool/upstreams.ts";
import { codeOrMessage, systemCode } from "../../lib/text/error-code.ts";

/** Maximum number of addresses of a name. Further ones are ignored. */
const MAX_ADDRESSES = 256;
/** Minimum time between two lookups, and the time between lookups while no address is known, in milliseconds. */
const SHORTEST_MS = 1_000;

interface NameEvents {
  /** The addresses have changed; empty once the last known ones are too old. */
  changed(addresses: readonly string[]): void;
  /** A lookup has ended. @param fault why it found nothing. */
  lookedUp(fault: string | undefined): void;
}

/** Resolves a name repeatedly. If a lookup fails or finds no address, the last known ones stay in use for a while. */
export class WatchedName {
  readonly #name: string;
  readonly #options: ResolveOptions;
  readonly #events: NameEvents;
  readonly #lookup: Lookup;
  #known: readonly string[] = [];
  #next: NodeJS.Timeout | undefined;
  #expiry: NodeJS.Timeout | undefined;
  #stopped = false;
  /** Whether a lookup has ended. */
  answered = false;

  constructor(name: string, options: ResolveOptions, events: NameEvents) {
    this.#name = name;
    this.#options = options;
    this.#events = events;
    this.#lookup = lookupFor(options);
  }

  /** Begins, until `stop`. */
  start(): void {
    void this.#round();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#next);
    clearTimeout(this.#expiry);
  }

  /** Never rejects. */
  async #round(): Promise<void> {
    let ttl = Infinity;
    let fault: string | undefined;
    try {
      const found = await this.#lookup(this.#name);
      ttl = found.ttl;
      if (found.addresses.length === 0) fault = "no address";
      else if (!this.#stopped) this.#use(found.addresses);
    } catch (error) {
      fault = codeOrMessage(error);
    }
    if (this.#stopped) return;
    this.answered = true;
    this.#events.lookedUp(fault);
    const { interval } = this.#options;
    const wanted = this.#known.length === 0 ? SHORTEST_MS : ttl;
    const wait = Math.min(interval, Math.max(wanted, SHORTEST_MS));
    this.#next = setTimeout(() => void this.#round(), wait).unref();
  }

  #use(found: readonly string[]): void {
    const addresses = [...new Set(found)].toSorted().slice(0, MAX_ADDRESSES);
    clearTimeout(this.#expiry);
    this.#expiry = setTimeout(() => this.#set([]), this.#options.staleFor).unref();
    this.#set(addresses);
  }

  #set(addresses: readonly string[]): void {
    if (addresses.join(" ") === this.#known.join(" ")) return;
    this.#known = addresses;
    this.#events.changed(addresses);
  }
}

/** The addresses of a name. */
interface Found {
  /** None if the name has no address. */
  readonly addresses: readonly string[];
  /** The TTL, in milliseconds; Infinity if there is none. */
  readonly ttl: number;
}

/** Looks up the addresses of a name. @throws the error of the system or of the DNS servers. */
type Lookup = (name: string) => Promise<Found>;

/** The time limit of a query to a DNS server, in milliseconds, and the number of tries. */
const QUERY = { timeout: 2_000, tries: 2 };
/** Errors for a name that does not exist, or has no address of this family. */
const NO_ADDRESS = new Set(["ENODATA", "ENOTFOUND"]);

/** The system's lookups run one after the other, since each takes one of the few threads that file access needs, too. */
let others: Promise<unknown> = Promise.resolve();

/** The records to ask for, one kind after the other; for `auto`, only the first kind that there is. */
const METHODS = {
  auto: ["resolve4", "resolve6"],
  all: ["resolve4", "resolve6"],
  ipv4: ["resolve4"],
  ipv6: ["resolve6"],
} as const;

/** Returns a lookup through the DNS servers in the options, or through the system. */
export function lookupFor({ servers, family }: ResolveOptions): Lookup {
  return servers === undefined ? systemLookup(family) : dnsLookup(servers, family);
}

/** `getaddrinfo`, which knows the hosts file and search domains, but no TTL. */
function systemLookup(family: ResolveOptions["family"]): Lookup {
  const wanted = family === "ipv4" ? 4 : family === "ipv6" ? 6 : 0;
  return async (name) => {
    const mine = others.then(() => lookupBySystem(name, { all: true, family: wanted }));
    others = mine.catch(() => undefined);
    const addresses = (await mine).map(({ address }) => address);
    return { addresses: family === "auto" ? preferred(addresses) : addresses, ttl: Infinity };
  };
}

function dnsLookup(servers: readonly string[], family: ResolveOptions["family"]): Lookup {
  const resolver = new Resolver(QUERY);
  resolver.setServers([...servers]);
  return async (name) => {
    const rows: RecordWithTtl[] = [];
    for (const method of METHODS[family]) {
      if (family === "auto" && rows.length > 0) break;
      rows.push(...(await resolver[method](name, { ttl: true }).catch(nothing)));
    }
    const ttl = Math.min(...rows.map((row) => row.ttl * 1000));
    return { addresses: rows.map(({ address }) => address), ttl };
  };
}

function preferred(addresses: readonly string[]): string[] {
  const first = addresses.filter((address) => isIPv4(address));
  return first.length > 0 ? first : [...addresses];
}

function nothing(error: unknown): never[] {
  if (NO_ADDRESS.has(systemCode(error) ?? "")) return [];
  throw error;
}
