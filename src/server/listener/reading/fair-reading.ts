import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { ClientReading } from "../../../core/request/client-reading.ts";
import type { Postponed } from "../../../core/observer.ts";
import type { Clock } from "../../../lib/clock.ts";
import { transportOf } from "../../../lib/node-internals/tls-transport.ts";
import { startReading, stopReading } from "../../../lib/node-internals/socket-reading.ts";
import type { ReadingClient } from "./reading-client.ts";
import { type Heaviness, ReadingClients } from "./reading-clients.ts";
import { ReadingTime } from "./reading-time.ts";
import { ResumeRate } from "./resume-rate.ts";
import { SharedUsage, usageMemory } from "./shared-usage.ts";
import { UNITS } from "./units.ts";

/** The maximum length of a turn of the event loop, in milliseconds. Beyond it, the heaviest clients are no longer read. */
const TURN_MS = 20;
/** The same for a turn that accepted connections: each turn accepts few, and more may be queued. */
const ACCEPTING_MS = 4;
/**
 * Connections that may start in the turn that accepted them. What they send makes the next turn long, during which no one
 * is accepted; so the others start in later turns, those of the lightest clients first.
 */
const STARTS_PER_TURN = 4;
/** Connections of clients that were served before, which start or resume in a turn in any case. */
const SERVED_PER_TURN = 4;
/** How often it is recorded that a client was served, in milliseconds. */
const NOTE_SERVED_MS = 1_000;
/** Units that pass before the time is checked, since detecting the end of a turn costs a turn of its own. */
const UNTIMED_UNITS = 16;

/**
 * Shares the time of the event loop among clients. libuv delivers everything that its poll reports, up to 1,024
 * connections with 64 KiB each and more, before it polls again; such a turn can last for seconds, in which no one is
 * accepted or answered. So, when a turn takes too long, the heaviest clients are no longer read, not even the data that
 * this poll has reported. Their connections resume in later turns, a few per turn, one per client in rotation: a client
 * with one connection never waits behind one with a hundred. New connections of heavy clients start in the same
 * order. Clients that were served before take precedence over strangers, since each of a crowd of addresses is as light as
 * they are.
 */
export class FairReading implements ClientReading {
  readonly #time: ReadingTime;
  readonly #clients: ReadingClients;
  readonly #owners = new WeakMap<Socket, ReadingClient>();
  /** Clients with paused connections, the next one first. */
  readonly #paused = new Set<ReadingClient>();
  #units = 0;
  #began: number | undefined;
  /** The time at which the current turn becomes too long. */
  #deadline = Infinity;
  #over = false;
  #accepted = false;
  /** Connections that started in the turn that accepted them. */
  #started = 0;
  /** A client that has used this many units is heavy, while the loop is busy. */
  #heavy: Heaviness = { served: Infinity, others: Infinity };
  readonly #resumeRate = new ResumeRate(TURN_MS);
  readonly #onPostponed: (what: Postponed, client: string, connections: number) => void;

  /**
   * @param onPostponed called with a client whose connections have to wait, and their number.
   * @param shared the usage of clients in other threads; undefined if there are none.
   */
  constructor(
    clock: Clock,
    onPostponed: (what: Postponed, client: string, connections: number) => void,
    shared: SharedUsage = new SharedUsage({ memory: usageMemory(1), row: 0 }, () => clock.now()),
  ) {
    this.#time = new ReadingTime(clock);
    this.#clients = new ReadingClients(shared);
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
    this.#owners.set(socket, client);
    socket.once("close", () => {
      this.#remove(client, socket);
      client.open -= 1;
      if (client.open === 0) this.#clients.forget(name, this.#time.age);
    });
    const now = this.#turn();
    this.#accepted = true;
    this.#deadline = Math.min(this.#deadline, (this.#began ?? now) + ACCEPTING_MS);
    this.#charge(client, UNITS.accept);
    const start = (): void => {
      this.#charge(client, UNITS.start);
      begin();
      if (!socket.destroyed) client.reading.add(socket);
    };
    const isLight = !this.#time.isBusy || !this.#isHeavy(client);
    const most = STARTS_PER_TURN + (this.#clients.wasServed(client) ? SERVED_PER_TURN : 0);
    if (client.accepted.size === 0 && isLight && this.#started < most) {
      this.#started += 1;
      return start();
    }
    stopReading(socket);
    if (!isLight) this.#onPostponed("accept", name, 1);
    client.accepted.set(socket, () => {
      startReading(socket);
      start();
    });
    this.#wait(client);
  }

  /** Tracks a connection that carries requests. */
  track(socket: Socket, name: string): void {
    const client = this.#clients.of(name);
    const below = transportOf(socket);
    if (below !== undefined && this.#owners.get(below)?.leave(below)) startReading(below);
    client.reading.add(socket);
    this.#owners.set(socket, client);
    socket.once("close", () => void this.#remove(client, socket));
    // Node resumes a connection when the body that arrives on it is read.
    socket.on("resume", () => {
      if (client.paused.has(socket)) stopReading(socket);
    });
    if (socket instanceof TLSSocket) this.#charge(client, UNITS.tlsHandshake);
  }

  /** Charges an upgrade, which opens a connection to a backend. */
  chargeUpgrade(connection: Socket): void {
    const client = this.#owners.get(connection);
    if (client !== undefined) this.#charge(client, UNITS.upgrade);
  }

  chargeLogin(connection: Socket): void {
    const client = this.#owners.get(connection);
    if (client !== undefined) this.#charge(client, UNITS.login);
  }

  charge(connection: Socket, backend?: Socket): void {
    const client = this.#owners.get(connection);
    if (client === undefined) return;
    if (backend !== undefined && this.#owners.get(backend) === undefined) {
      this.#owners.set(backend, client);
      client.reading.add(backend);
    }
    client.known = true;
    this.#charge(client, UNITS.request);
  }

  served(connection: Socket): void {
    const client = this.#owners.get(connection);
    if (client === undefined || this.#time.now < client.servedUntil) return;
    client.servedUntil = this.#time.now + NOTE_SERVED_MS;
    this.#clients.served(client);
  }

  release(backend: Socket): void {
    const client = this.#owners.get(backend);
    if (client === undefined) return;
    this.#owners.delete(backend);
    if (this.#remove(client, backend)) startReading(backend);
  }

  #isHeavy(client: ReadingClient): boolean {
    return this.#clients.isHeavy(client, this.#time.age, this.#heavy);
  }

  #charge(client: ReadingClient, units: number): void {
    this.#units += units;
    if (this.#units >= UNTIMED_UNITS) this.#turn();
    client.charge(units, this.#time.age);
    if (this.#time.now >= this.#deadline) this.#turnTooLong(this.#time.now);
  }

  /** Returns the time. Starts to time a turn, unless one is being timed. */
  #turn(): number {
    const now = this.#time.read();
    if (this.#began === undefined) {
      this.#began = now;
      this.#deadline = now + TURN_MS;
      this.#over = false;
      this.#accepted = false;
      this.#started = 0;
      setImmediate(this.#onTurnEnd);
    }
    return now;
  }

  /**
   * Pauses the clients whose usage is at least half of the usage-weighted mean; if the turn is still too long, also newcomers.
   */
  #turnTooLong(now: number): void {
    this.#heavy = this.#clients.heavyFrom(this.#time.age);
    for (const [name, client] of this.#clients) {
      if (client.reading.size === 0) continue;
      const isHeavy = this.#isHeavy(client);
      if (!isHeavy && (!this.#over || this.#isEstablished(client))) continue;
      const paused = client.pause();
      if (paused > 0) this.#wait(client);
      if (paused > 0 && isHeavy) this.#onPostponed("read", name, paused);
    }
    this.#over = true;
    this.#deadline = now + ACCEPTING_MS;
    this.#time.turnedBusy();
  }

  #isEstablished(client: ReadingClient): boolean {
    return this.#clients.isKnown(client) || this.#clients.wasServed(client);
  }

  #wait(client: ReadingClient): void {
    this.#paused.add(client);
    this.#turn();
  }

  /** Returns whether it was waiting. */
  #remove(client: ReadingClient, socket: Socket): boolean {
    const waited = client.leave(socket);
    if (client.waiting === 0) this.#paused.delete(client);
    return waited;
  }

  readonly #onTurnEnd = (): void => {
    const now = this.#time.read();
    const lasted = now - (this.#began ?? now);
    this.#began = undefined;
    this.#deadline = Infinity;
    this.#units = 0;
    if (this.#time.isBusy) this.#clients.share(this.#time.age);
    if (this.#paused.size === 0) return;
    const turn = { end: now, lasted, overran: this.#over, accepted: this.#accepted };
    this.#resume(this.#resumeRate.after(turn));
    if (this.#paused.size > 0) this.#turn();
  };

  /** Resumes one connection of each client, the lightest client first; then another of each. */
  #resume(most: number): void {
    const { age } = this.#time;
    const { clients, preferred } = this.#clients.lightestFirst(this.#paused, age, this.#heavy);
    let left = Math.max(most, Math.min(preferred, SERVED_PER_TURN));
    while (left > 0 && this.#paused.size > 0) {
      for (const client of clients.slice(0, left)) {
        left -= 1;
        client.resumeNext();
        if (client.waiting === 0) this.#paused.delete(client);
      }
    }
  }
}
