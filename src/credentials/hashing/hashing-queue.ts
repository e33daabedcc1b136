import { GateError } from "../../core/request/errors.ts";
import type { AttemptOrigin } from "../throttle/login-throttle.ts";

/** One place in four is reserved for unknown networks, so that a legitimate user cannot lock out everybody else. */
const UNKNOWN_SHARE = 4;

/**
 * The queue for hashing threads, in two classes: logins from known networks (the name has logged in from there before)
 * and from unknown ones. When both classes wait, known networks get three of every four turns and three of every four
 * places. Either class may use what the other leaves free, and gives it back on demand. When the queue is full, a
 * lighter network displaces the newest job of the heaviest one.
 *
 * During a storm, status 503 and the response time therefore reveal whether a network is known to a name, but only to
 * clients in that same network (the same /64). Without the two classes, no login would get through during a storm.
 */
export class HashingQueue<Job> {
  #places = 0;
  #unknownPlaces = 0;
  readonly #known = new FairQueue<Job>();
  readonly #unknown = new FairQueue<Job>();
  #knownInARow = 0;

  /** @param places maximum number of waiting jobs in both classes together. */
  constructor(places: number) {
    this.change(places);
  }

  /** Changes the maximum number of waiting jobs. Jobs that wait already keep their place. */
  change(places: number): void {
    this.#places = places;
    this.#unknownPlaces = Math.floor(places / UNKNOWN_SHARE);
  }

  get length(): number {
    return this.#known.length + this.#unknown.length;
  }

  /** @returns the job without a place: this one or the one it displaced; undefined if there is room for all. */
  add(job: Job, origin: AttemptOrigin): Job | undefined {
    const line = origin.known ? this.#known : this.#unknown;
    if (this.length < this.#places) {
      line.add(job, origin);
      return undefined;
    }
    const other = origin.known ? this.#unknown : this.#known;
    const loser = this.#hasTooMuch(other)
      ? other.displace(0)
      : line.displace(line.weightOf(origin));
    if (loser === undefined) return job;
    line.add(job, origin);
    return loser;
  }

  next(): Job | undefined {
    if (this.#unknown.length === 0) return this.#known.next();
    this.#knownInARow = (this.#knownInARow + 1) % UNKNOWN_SHARE;
    if (this.#known.length > 0 && this.#knownInARow > 0) return this.#known.next();
    this.#knownInARow = 0;
    return this.#unknown.next();
  }

  #hasTooMuch(line: FairQueue<Job>): boolean {
    const part = line === this.#unknown ? this.#unknownPlaces : this.#places - this.#unknownPlaces;
    return line.length > part;
  }
}

/** The error for a login that finds its queue full. */
export function queueFull(): GateError {
  return new GateError("login_queue_full", { reason: "queue_full", retryAfter: 1 });
}

interface Network<Job> {
  /** Oldest first, never empty. */
  readonly jobs: Job[];
  failures: number;
}

/**
 * A fair queue: networks take turns in round-robin order, however many jobs each one has. A network with a single job
 * waits for at most one job of every other network. The weight of a network is its number of waiting jobs plus its
 * recent failures.
 */
class FairQueue<Job> {
  /** In the order of their turns. */
  readonly #networks = new Map<string, Network<Job>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  add(job: Job, { network, failures }: AttemptOrigin): void {
    const waiting = this.#networks.get(network) ?? { jobs: [], failures };
    waiting.jobs.push(job);
    waiting.failures = failures;
    this.#networks.set(network, waiting);
    this.#length += 1;
  }

  /** Removes and returns the oldest job of the network whose turn it is. */
  next(): Job | undefined {
    for (const [network, waiting] of this.#networks) {
      this.#networks.delete(network);
      this.#length -= 1;
      const job = waiting.jobs.shift();
      if (waiting.jobs.length > 0) this.#networks.set(network, waiting);
      return job;
    }
    return undefined;
  }

  /** Returns the weight that the network of a new job would have with it. */
  weightOf({ network, failures }: AttemptOrigin): number {
    return (this.#networks.get(network)?.jobs.length ?? 0) + failures + 1;
  }

  /** Removes and returns the newest job of the heaviest network, if that weighs more than `least`. */
  displace(least: number): Job | undefined {
    let heaviest: string | undefined;
    let most = least;
    for (const [network, { jobs, failures }] of this.#networks) {
      if (jobs.length + failures <= most) continue;
      most = jobs.length + failures;
      heaviest = network;
    }
    if (heaviest === undefined) return undefined;
    const jobs = this.#networks.get(heaviest)?.jobs ?? [];
    const job = jobs.pop();
    if (jobs.length === 0) this.#networks.delete(heaviest);
    this.#length -= 1;
    return job;
  }
}
