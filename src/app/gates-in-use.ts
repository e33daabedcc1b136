import type { Forwarder, UpstreamLoad } from "../core/forwarder.ts";
import type { Upstream } from "../upstream/upstreams.ts";
import type { ClosablePart, OpenGate } from "./gate.ts";

/**
 * A request that began with a gate may still need it so long after another has taken its place, before anything can be
 * seen of it: while it waits for the keys of a trusted issuer, say. In milliseconds.
 */
const LEAVE_MS = 6_000;

/** Of a gate what something may run on. Its routes and their counts are left to the requests that still have them. */
interface Ground {
  readonly forwarder: Forwarder;
  readonly upstreams: ReadonlyMap<string, Upstream>;
  readonly parts: ReadonlySet<ClosablePart>;
}

function groundOf({ gate, kept, parts }: OpenGate): Ground {
  const upstreams = new Map([...kept.upstreams].map(([name, { value }]) => [name, value]));
  return { forwarder: gate.forwarder, upstreams, parts };
}

/** The gate in force, and those before it on which something may still run; they share what they have taken over. */
export class GatesInUse {
  readonly #earlier = new Set<Ground>();
  #current: Ground;

  constructor(first: OpenGate) {
    this.#current = groundOf(first);
  }

  /** Puts another in force. What the one before it alone has is closed when nothing runs on it any more. */
  replace(next: OpenGate): void {
    this.#earlier.add(this.#current);
    this.#leaveLater(this.#current);
    this.#current = groundOf(next);
  }

  /** Closes what one that has never been in force does not share. */
  drop({ parts }: OpenGate): void {
    this.#closeUnused(parts);
  }

  /** What the targets of an upstream have to do, those of earlier gates included. */
  load(name: string): UpstreamLoad {
    const upstreams = new Set(this.#all().map((each) => each.upstreams.get(name)));
    const loads = [...upstreams].flatMap((upstream) => upstream?.load ?? []);
    return {
      inFlight: loads.reduce((sum, { inFlight }) => sum + inFlight, 0),
      waiting: loads.reduce((sum, { waiting }) => sum + waiting, 0),
    };
  }

  closeWebSockets(): void {
    const forwarders = new Set(this.#all().map(({ forwarder }) => forwarder));
    for (const forwarder of forwarders) forwarder.closeWebSockets();
  }

  async close(): Promise<void> {
    await Promise.all([...this.#used()].map(async (part) => part.close()));
  }

  #all(): Ground[] {
    return [this.#current, ...this.#earlier];
  }

  #used(): Set<ClosablePart> {
    return new Set(this.#all().flatMap(({ parts }) => [...parts]));
  }

  #closeUnused(parts: Iterable<ClosablePart>): void {
    const used = this.#used();
    for (const part of parts) if (!used.has(part)) void part.close();
  }

  #leaveLater(ground: Ground): void {
    setTimeout(() => {
      if (this.#isBusy(ground)) {
        this.#leaveLater(ground);
        return;
      }
      this.#earlier.delete(ground);
      this.#closeUnused(ground.parts);
    }, LEAVE_MS).unref();
  }

  /** Whether something runs on what the gate in force has not taken over. */
  #isBusy({ forwarder, upstreams }: Ground): boolean {
    const { forwarder: inForce, parts } = this.#current;
    const left = [...upstreams.values()].filter((upstream) => !parts.has(upstream));
    return (
      left.some(({ load }) => load.inFlight + load.waiting > 0) ||
      (forwarder !== inForce && forwarder.webSockets() > 0)
    );
  }
}
