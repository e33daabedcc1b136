import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientReading } from "../../../core/request/client-reading.ts";
import type { Postponed } from "../../../core/observer.ts";
import type { Clock } from "../../../lib/clock.ts";
import { startReading, stopReading } from "../../../lib/http/socket-reading.ts";
import type { ReadingClient } from "./reading-client.ts";
import { ReadingClients } from "./reading-clients.ts";
import { ResumeRate } from "./resume-rate.ts";

/**
 * The maximum length of a turn of the event loop, in milliseconds. Beyond it, the heaviest clients are no longer
 * read.
 */
const TURN_MS = 20;
/** The same for a turn that accepted connections: each turn accepts few, and more may be queued. */
const ACCEPTING_MS = 4;
/** How long after a long turn new connections of heavy clients have to wait, in milliseconds. */
const BUSY_MS = 100;
/**
 * How much slower usage decays while the loop is busy: with a half-life of 4 s. So what a client did before hardly counts
 * against clients that have just arrived, but its share of the scarce time counts until all have had their turn.
 */
const BUSY_DECAY = 128;
/** Units that pass before the time is checked, since detecting the end of a turn costs a turn of its own. */
const UNTIMED_UNITS = 16;
/** Costs in units. Reading a request costs one. */
const ACCEPT_UNITS = 1;
const START_UNITS = 3;
const TLS_HANDSHAKE_UNITS = 8;
const UPGRADE_UNITS = 24;
/** A login costs four requests: its body, a call to the main thread, a line in the log. */
const LOGIN_UNITS = 3;

/**
 * Shares the time of the event loop among clients. libuv delivers everything that its poll reports, up to 1,024
 * connections with 64 KiB each and more, before it polls again; such a turn can last for seconds, in which nobody is
 * accepted or answered. So, when a turn takes too long, the heaviest clients are no longer read, not even what this
 * poll has reported. Their connections resume in later turns, a few per turn, one per client in rotation: a client
 * with one connection never waits behind one with a hundred. New connections of heavy clients start in the same
 * order.
 */
export class FairReading implements ClientReading {
  readonly #clock: Clock;
  readonly #clients = new ReadingClients();
  readonly #owners = new WeakMap<Socket, ReadingClient>();
  /** Clients with paused connections, the next one first. */
  readonly #paused = new Set<ReadingClient>();
  #units = 0;
  #now = 0;
  /** The time by which usage decays, in milliseconds; it passes slowly while the loop is busy. */
  #age = 0;
  #began: number | undefined;
  /** The time at which the current turn becomes too long. */
  #deadline = Infinity;
  #over = false;
  #accepted = false;
  /** A client that has used this many units is heavy, until `#busyUntil`. */
  #heavy = Infinity;
  #busyUntil = 0;
  readonly #resumeRate = new ResumeRate(TURN_MS);
  readonly #onPostponed: (what: Postponed, client: string, connections: number) => void;

  /** @param onPostponed called with a client whose connections have to wait, and their number. */
  constructor(
    clock: Clock,
    onPostponed: (what: Postponed, client: string, connections: number) => void,
  ) {
    this.#clock = clock;
    this.#onPostponed = onPostponed;
  }

  /** The number of paused connections. */
  get waiting(): number {
    let all = 0;
    for (const { waiting } of this.#paused) all += waiting;
    return all;
  }

  /** Starts an accepted connection: at once, or in its turn. */
  accept(socket: Socket, name: string, begin: () => void): void {
    const client = this.#clients.of(name);
    client.open += 1;
    socket.once("close", () => {
      this.#remove(client, socket);
      client.open -= 1;
      if (client.open === 0) this.#clients.forget(name, this.#age);
    });
    const now = this.#turn();
    this.#accepted = true;
    this.#deadline = Math.min(this.#deadline, (this.#began ?? now) + ACCEPTING_MS);
    this.#charge(client, ACCEPT_UNITS);
    const start = (): void => {
      this.#charge(client, START_UNITS);
      begin();
    };
    const isLight = now >= this.#busyUntil || client.used(this.#age) < this.#heavy;
    if (client.accepted.size === 0 && isLight) return start();
    stopReading(socket);
    this.#onPostponed("accept", name, 1);
    this.#wait(client, client.accepted, socket, () => {
      startReading(socket);
      start();
    });
  }

  /** Tracks a connection that carries requests. */
  track(socket: Socket, name: string): void {
    const client = this.#clients.of(name);
    client.reading.add(socket);
    this.#owners.set(socket, client);
    socket.once("close", () => void this.#remove(client, socket));
    if (socket instanceof TLSSocket) this.#charge(client, TLS_HANDSHAKE_UNITS);
  }

  /** Charges an upgrade, which opens a connection to a backend. */
  chargeUpgrade(connection: Socket): void {
    const client = this.#owners.get(connection);
    if (client !== undefined) this.#charge(client, UPGRADE_UNITS);
  }

  chargeLogin(connection: Socket): void {
    const client = this.#owners.get(connection);
    if (client !== undefined) this.#charge(client, LOGIN_UNITS);
  }

  charge(connection: Socket, backend?: Socket): void {
    const client = this.#owners.get(connection);
    if (client === undefined) return;
    if (backend !== undefined && this.#owners.get(backend) === undefined) {
      this.#owners.set(backend, client);
      client.reading.add(backend);
    }
    this.#charge(client, 1);
  }

  release(backend: Socket): void {
    const client = this.#owners.get(backend);
    if (client === undefined) return;
    this.#owners.delete(backend);
    if (this.#remove(client, backend)) startReading(backend);
  }

  #charge(client: ReadingClient, units: number): void {
    this.#units += units;
    if (this.#units >= UNTIMED_UNITS) this.#turn();
    client.charge(units, this.#age);
    if (this.#now >= this.#deadline) this.#turnTooLong(this.#now);
  }

  /** Returns the time. Starts to time a turn, unless one is being timed. */
  #turn(): number {
    const now = this.#time();
    if (this.#began === undefined) {
      this.#began = now;
      this.#deadline = now + TURN_MS;
      this.#over = false;
      this.#accepted = false;
      setImmediate(this.#onTurnEnd);
    }
    return now;
  }

  #time(): number {
    const now = this.#clock.monotonic();
    this.#age += (now - this.#now) / (this.#now < this.#busyUntil ? BUSY_DECAY : 1);
    this.#now = now;
    return now;
  }

  #turnTooLong(now: number): void {
    this.#over = true;
    this.#deadline = now + ACCEPTING_MS;
    this.#busyUntil = now + BUSY_MS;
    this.#pauseHeaviest();
  }

  /** Pauses the clients whose usage is at least half of the usage-weighted mean. */
  #pauseHeaviest(): void {
    this.#heavy = this.#clients.heavyFrom(this.#age);
    for (const [name, client] of this.#clients) {
      if (client.reading.size === 0 || client.used(this.#age) < this.#heavy) continue;
      const paused = this.#pause(client);
      if (paused > 0) this.#onPostponed("read", name, paused);
    }
  }

  /** Returns how many connections it has paused. */
  #pause(client: ReadingClient): number {
    const before = client.paused.size;
    for (const socket of client.reading) {
      // Something else has paused it: no data arrives.
      if (!stopReading(socket)) continue;
      client.reading.delete(socket);
      this.#wait(client, client.paused, socket, () => {
        client.reading.add(socket);
        startReading(socket);
      });
    }
    return client.paused.size - before;
  }

  #wait(
    client: ReadingClient,
    line: Map<Socket, () => void>,
    socket: Socket,
    resume: () => void,
  ): void {
    line.set(socket, resume);
    this.#paused.add(client);
    this.#turn();
  }

  /** Returns whether the connection was waiting. */
  #remove(client: ReadingClient, socket: Socket): boolean {
    const waited = client.leave(socket);
    if (client.waiting === 0) this.#paused.delete(client);
    return waited;
  }

  readonly #onTurnEnd = (): void => {
    const now = this.#time();
    const lasted = now - (this.#began ?? now);
    this.#began = undefined;
    this.#deadline = Infinity;
    this.#units = 0;
    if (this.#paused.size === 0) return;
    const [overran, accepted] = [this.#over, this.#accepted];
    this.#resume(this.#resumeRate.after({ end: now, lasted, overran, accepted }));
    if (this.#paused.size > 0) this.#turn();
  };

  /** Resumes one connection of each client, the lightest client first; then another of each. */
  #resume(most: number): void {
    if (most === 0) return;
    let left = most;
    const clients = [...this.#paused].toSorted(
      (one, other) => one.used(this.#age) - other.used(this.#age),
    );
    while (left > 0 && this.#paused.size > 0) {
      for (const client of clients.slice(0, left)) {
        left -= 1;
        client.resumeNext();
        if (client.waiting === 0) this.#paused.delete(client);
      }
    }
  }
}
