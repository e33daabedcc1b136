import type { AttemptOrigin } from "../throttle/login-throttle.ts";
import { FairHashingQueue } from "./fair-hashing-queue.ts";

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
  readonly #known = new FairHashingQueue<Job>();
  readonly #unknown = new FairHashingQueue<Job>();
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
    const loser = this.#hasTooMuch(other) ? other.displaceNewest() : line.displaceFor(origin);
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

  #hasTooMuch(line: FairHashingQueue<Job>): boolean {
    const part = line === this.#unknown ? this.#unknownPlaces : this.#places - this.#unknownPlaces;
    return line.length > part;
  }
}
