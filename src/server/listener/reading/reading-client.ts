import type { Socket } from "node:net";
import { randomInt } from "node:crypto";
import { reportUncaught } from "../../../lib/async/isolation.ts";
import { startReading, stopReading } from "../../../lib/node-internals/node-sockets.ts";

/** The cells of a thread: the time of its last write, then one for each bucket. */
const BUCKETS = 4_096;
const CELLS = 1 + BUCKETS;
/** Older data of a thread does not count, in milliseconds: a busy thread writes at the end of each turn. */
const FRESH_MS = 250;
/** How long a client counts as served, in milliseconds. */
const SERVED_MS = 600_000;

/** The memory in which the threads of a process share the usage of clients, and the row of this thread. */
export interface UsageRow {
  readonly memory: SharedArrayBuffer;
  readonly row: number;
}

/** Allocates the memory: a row for each thread, then the time at which each bucket was last served, and a salt. */
export function usageMemory(threads: number): SharedArrayBuffer {
  const cells = CELLS * threads + BUCKETS + 1;
  const memory = new SharedArrayBuffer(cells * Float64Array.BYTES_PER_ELEMENT);
  const all = new Float64Array(memory);
  all.fill(-Infinity, CELLS * threads);
  all[cells - 1] = randomInt(2 ** 32);
  return memory;
}

/**
 * The usage of clients in the other threads, and which clients were served in any. Otherwise a crowd spread over four
 * threads would be new to each of them, and take precedence four times. Each thread writes its own row and reads the
 * others, without locks or messages.
 */
export class SharedUsage {
  readonly #cells: Float64Array<SharedArrayBuffer>;
  readonly #begins: number;
  /** The index at which the rows end and the times begin. */
  readonly #end: number;
  readonly #now: () => number;

  /** @param now the time in milliseconds, which all threads share. */
  constructor({ memory, row }: UsageRow, now: () => number) {
    this.#cells = new Float64Array(memory);
    this.#begins = row * CELLS;
    this.#end = this.#cells.length - BUCKETS - 1;
    this.#now = now;
  }

  /** The number of threads. */
  get threads(): number {
    return this.#end / CELLS;
  }

  /**
   * Returns the bucket of a client (FNV-1a). Clients in one bucket count as one in other threads; the salt prevents them
   * from choosing a bucket.
   */
  bucketOf(client: string): number {
    let hash = this.#cells.at(-1) ?? 0;
    for (let i = 0; i < client.length; i += 1) {
      hash = Math.imul(hash ^ client.charCodeAt(i), 0x01000193);
    }
    return (hash >>> 8) % BUCKETS;
  }

  /** Writes the usage in this thread, replacing all earlier values. */
  write(used: Iterable<readonly [bucket: number, units: number]>): void {
    const begins = this.#begins;
    this.#cells.fill(0, begins, begins + CELLS);
    for (const [bucket, units] of used) {
      const cell = begins + 1 + bucket;
      this.#cells[cell] = (this.#cells[cell] ?? 0) + units;
    }
    this.#cells[begins] = this.#now();
  }

  /** Records that a client in a bucket was just served. */
  served(bucket: number): void {
    this.#cells[this.#end + bucket] = this.#now();
  }

  /** Whether a client in a bucket was recently served, in any thread. */
  wasServed(bucket: number): boolean {
    return this.#now() - (this.#cells[this.#end + bucket] ?? 0) <= SERVED_MS;
  }

  /** Returns the units of a bucket in all other busy threads. */
  elsewhere(bucket: number): number {
    const now = this.#now();
    let units = 0;
    for (let begins = 0; begins < this.#end; begins += CELLS) {
      if (begins === this.#begins) continue;
      if (Math.abs(now - (this.#cells[begins] ?? 0)) <= FRESH_MS) {
        units += this.#cells[begins + 1 + bucket] ?? 0;
      }
    }
    return units;
  }
}

/** The half-life of a client's usage, in milliseconds; it decays in steps. */
const HALF_LIFE_MS = 32;
const STEPS = 8;
const STEP_MS = HALF_LIFE_MS / STEPS;
const LEFT_AFTER_STEP = 0.5 ** (1 / STEPS);
/** A client that has used fewer units per thread is never heavy. */
const LIGHT_UNITS = 16;
/** How long a heavy client without connections is remembered, in milliseconds. */
const REMEMBERED_MS = 2_000;
/** Paused connections that resume before a new one starts: busy ones that pause in every turn would delay it forever. */
const PAUSED_BEFORE_ACCEPTED = 8;

/** One client: all connections of an address, or a single connection of a trusted proxy. */
export class ReadingClient {
  /** The bucket in which its usage is shared with other threads. */
  readonly bucket: number;
  /** Open connections. */
  open = 0;
  /** Whether something was read from it. */
  known = false;
  /** Until when it need not be recorded again that it was served, in milliseconds. */
  servedUntil = -Infinity;
  /** Connections that are being read; during a TLS handshake, the connection below. */
  readonly reading = new Set<Socket>();
  /** Connections that are paused, in the order in which they resume. */
  readonly paused = new Map<Socket, () => void>();
  /** Connections that have not started, in the same order. They cost more, so several paused ones resume before each. */
  readonly accepted = new Map<Socket, () => void>();
  /** Paused connections that resumed since a new one started. */
  #resumed = 0;
  /** Units used, as of `#at`. */
  #used = 0;
  #at = 0;

  constructor(bucket = 0) {
    this.bucket = bucket;
  }

  charge(units: number, now: number): void {
    this.#used = this.used(now) + units;
  }

  /** The number of connections that wait for their turn. */
  get waiting(): number {
    return this.paused.size + this.accepted.size;
  }

  /** Stops reading from its connections. @returns how many were being read and wait now. */
  pause(): number {
    const before = this.paused.size;
    for (const socket of this.reading) {
      // A paused stream may resume in this turn: Node pauses a connection until its body is passed on. Others stay stopped.
      if (!stopReading(socket) && !socket.isPaused()) continue;
      this.reading.delete(socket);
      this.paused.set(socket, () => this.#resume(socket));
      // Node resumes a connection when the body that arrives on it is read.
      socket.on("resume", stopAgain);
    }
    return this.paused.size - before;
  }

  #resume(socket: Socket): void {
    socket.off("resume", stopAgain);
    this.reading.add(socket);
    startReading(socket);
  }

  /** Resumes the connection whose turn it is, and those before it whose streams are paused: they cost nothing. */
  resumeNext(): void {
    const isPausedTurn = this.#resumed < PAUSED_BEFORE_ACCEPTED || this.accepted.size === 0;
    const line = isPausedTurn && this.paused.size > 0 ? this.paused : this.accepted;
    this.#resumed = line === this.paused ? this.#resumed + 1 : 0;
    for (const [socket, next] of line) {
      line.delete(socket);
      try {
        next();
      } catch (error) {
        // The connections of other clients still get their turn.
        reportUncaught(error);
      }
      if (line === this.accepted || !socket.isPaused()) return;
    }
  }

  /** Returns whether the connection was waiting. */
  leave(socket: Socket): boolean {
    this.reading.delete(socket);
    if (!this.paused.delete(socket)) return this.accepted.delete(socket);
    socket.off("resume", stopAgain);
    return true;
  }

  used(now: number): number {
    const steps = Math.floor((now - this.#at) / STEP_MS);
    if (steps > 0) {
      this.#used *= LEFT_AFTER_STEP ** steps;
      this.#at += steps * STEP_MS;
    }
    return this.#used;
  }
}

function stopAgain(this: Socket): void {
  stopReading(this);
}

/** Clients that were served are never heavy while they use less than this part of all units together. */
const SERVED_PART = 1 / 4;

/** The usage from which a client is heavy: for clients that were served before, and for others. */
export interface Heaviness {
  readonly served: number;
  readonly others: number;
}

/**
 * The clients with connections, by name, and heavy clients that had connections a moment ago. Compares them by their usage in
 * all threads.
 */
export class ReadingClients extends Map<string, ReadingClient> {
  readonly #shared: SharedUsage;

  constructor(shared: SharedUsage) {
    super();
    this.#shared = shared;
  }

  of(name: string): ReadingClient {
    let client = this.get(name);
    if (client === undefined) {
      client = new ReadingClient(this.#shared.bucketOf(name));
      this.set(name, client);
    }
    return client;
  }

  /** Forgets a client without connections. A heavy one is remembered for a while, so that closing them does not help it. */
  forget(name: string, age: number): void {
    if (this.of(name).used(age) < LIGHT_UNITS) this.delete(name);
    else {
      setTimeout(() => {
        if (this.get(name)?.open === 0) this.delete(name);
      }, REMEMBERED_MS).unref();
    }
  }

  isLight(client: ReadingClient, age: number): boolean {
    return this.#used(client, age) < LIGHT_UNITS * this.#shared.threads;
  }

  isHeavy(client: ReadingClient, age: number, { served, others }: Heaviness): boolean {
    const used = this.#used(client, age);
    return used >= others && (used >= served || !this.#wasServed(client));
  }

  /** Whether a client was read or served before, in any thread. */
  isEstablished(client: ReadingClient): boolean {
    return this.#isKnown(client) || this.#wasServed(client);
  }

  /**
   * Sorts clients: those that were served come first, and within each group the lightest. Newcomers follow those that are
   * known to be light, since a crowd that has not been read yet has used nothing.
   *
   * @param heavy the usage from which a client is heavy.
   * @returns the clients, and how many of them come first because they were served and are not heavy.
   */
  lightestFirst(
    clients: Iterable<ReadingClient>,
    age: number,
    heavy: Heaviness,
  ): { readonly clients: readonly ReadingClient[]; readonly preferred: number } {
    const ranked = [...clients].map((client) => {
      const preferred = this.#wasServed(client) && !this.isHeavy(client, age, heavy);
      const used = this.#used(client, age);
      const known = preferred || this.#isKnown(client);
      return { client, preferred, used: known ? used : Math.max(used, heavy.others) };
    });
    // Before the first turn that is too long, no client is heavy: `others` is infinite, and infinities cannot be subtracted.
    const byUsage = ranked.toSorted((one, other) =>
      one.used === other.used ? 0 : one.used - other.used,
    );
    const [first, then] = [true, false].map((preferred) =>
      byUsage.filter((each) => each.preferred === preferred).map(({ client }) => client),
    );
    return { clients: [...(first ?? []), ...(then ?? [])], preferred: first?.length ?? 0 };
  }

  /** Publishes the usage of clients in this thread to the other threads. */
  share(age: number): void {
    if (this.#shared.threads === 1) return;
    const known = [...this.values()].filter((client) => client.known);
    this.#shared.write(known.map((client) => [client.bucket, client.used(age)]));
  }

  /**
   * Returns the usage from which clients are heavy: half of the usage-weighted mean. For those that were served it is half
   * of their own mean, or infinite if others take the time.
   */
  heavyFrom(age: number): Heaviness {
    const [everybody, served] = [new Sum(), new Sum()];
    for (const client of this.values()) {
      const used = this.#used(client, age);
      everybody.add(used);
      if (this.#wasServed(client)) served.add(used);
    }
    const least = LIGHT_UNITS * this.#shared.threads;
    const takesTime = served.all >= everybody.all * SERVED_PART;
    return {
      served: takesTime ? Math.max(least, served.weightedMean / 2) : Infinity,
      others: Math.max(least, everybody.weightedMean / 2),
    };
  }

  #isKnown({ known, bucket }: ReadingClient): boolean {
    return known || this.#shared.elsewhere(bucket) > 0;
  }

  #wasServed({ bucket }: ReadingClient): boolean {
    return this.#shared.wasServed(bucket);
  }

  #used(client: ReadingClient, age: number): number {
    return client.used(age) + this.#shared.elsewhere(client.bucket);
  }
}

class Sum {
  all = 0;
  #squares = 0;

  add(used: number): void {
    this.all += used;
    this.#squares += used * used;
  }

  get weightedMean(): number {
    return this.all === 0 ? 0 : this.#squares / this.all;
  }
}
