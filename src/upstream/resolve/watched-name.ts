import { codeOrMessage } from "../../lib/text/error-code.ts";
import { type Lookup, lookupFor, type ResolveOptions } from "./lookup.ts";

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
