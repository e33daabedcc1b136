import type { AttemptOrigin } from "../core/credential-check.ts";
import { FairLine } from "./fair-line.ts";

/** One place in so many is the strangers': somebody with a user of their own cannot keep all others out. */
const STRANGERS_PART = 4;

/**
 * What waits for a hashing thread, in two lines: names on networks that they have logged in from, and strangers. When
 * both wait, the familiar have three turns of four, and three places of four; what one line leaves the other may use, and
 * gives back when it is wanted. In a full line a network with less behind it takes the newest place of the heaviest.
 *
 * Whether a name is familiar thus shows in a storm, by 503 and by time: to whoever sits on the same network (the same
 * /64), and to nobody else. Without it no login could be told from the storm.
 */
export class HashingQueue<Job> {
  readonly #places: number;
  readonly #strangersPlaces: number;
  readonly #familiar = new FairLine<Job>();
  readonly #strangers = new FairLine<Job>();
  #familiarInARow = 0;

  /** @param places how many may wait, in both lines together. */
  constructor(places: number) {
    this.#places = places;
    this.#strangersPlaces = Math.floor(places / STRANGERS_PART);
  }

  get length(): number {
    return this.#familiar.length + this.#strangers.length;
  }

  /** @returns the job that has no place: this one, or one that had to give way; undefined when there is room for all. */
  add(job: Job, origin: AttemptOrigin): Job | undefined {
    const line = origin.familiar ? this.#familiar : this.#strangers;
    if (this.length < this.#places) {
      line.join(job, origin);
      return undefined;
    }
    const other = origin.familiar ? this.#strangers : this.#familiar;
    const loser = this.#hasTooMuch(other) ? other.giveWay() : line.giveWayTo(origin);
    if (loser === undefined) return job;
    line.join(job, origin);
    return loser;
  }

  next(): Job | undefined {
    if (this.#strangers.length === 0) return this.#familiar.next();
    this.#familiarInARow = (this.#familiarInARow + 1) % STRANGERS_PART;
    if (this.#familiar.length > 0 && this.#familiarInARow > 0) return this.#familiar.next();
    this.#familiarInARow = 0;
    return this.#strangers.next();
  }

  #hasTooMuch(line: FairLine<Job>): boolean {
    const part =
      line === this.#strangers ? this.#strangersPlaces : this.#places - this.#strangersPlaces;
    return line.length > part;
  }
}
