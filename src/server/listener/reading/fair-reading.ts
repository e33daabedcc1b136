import type { Socket } from "node:net";
import type { Clock } from "../../../lib/clock.ts";
import { startReading, stopReading } from "../../../lib/node-internals/node-sockets.ts";
import { type ReadingClient, ReadingClients, SharedUsage, usageMemory } from "./reading-client.ts";
import { type OnPostponed, SERVED_PER_TURN, TURN_MS, WaitingClients } from "./waiting-clients.ts";

/** The units that clients are charged for event-loop time: reading a request costs one. */
const UNITS = {
  request: 1,
  accept: 1,
  start: 3,
  tlsHandshake: 8,
  upgrade: 24,
  /** In addition to the request: its body, a call to the main thread, and a log line. */
  login: 3,
} as const;
/** The maximum length of a turn that accepted connections, in milliseconds: each turn accepts few, and more may be queued. */
const ACCEPTING_MS = 4;
/**
 * Connections that may start in the turn that accepted them. What they send makes the next turn long, during which no one
 * is accepted; so the others start in later turns, those of the lightest clients first.
 */
const STARTS_PER_TURN = 4;
/** How often it is recorded that a client was served, in milliseconds. */
const NOTE_SERVED_MS = 1_000;
/** Units that pass before the time is checked, since detecting the end of a turn costs a turn of its own. */
const UNTIMED_UNITS = 16;
/** How long after a long turn the event loop counts as busy, in milliseconds. */
const BUSY_MS = 100;
/**
 * How much slower usage decays while the loop is busy: with a half-life of 4 s. So earlier usage hardly puts a client behind
 * new ones, but its share of the scarce time counts until all have had their turn.
 */
const BUSY_DECAY = 128;

/**
 * Shares the time of the event loop among clients. libuv delivers everything that its poll reports, up to 1,024
 * connections with 64 KiB each and more, before it polls again; such a turn can last for seconds, in which no one is
 * accepted or answered. So, when a turn takes too long, the heaviest clients are no longer read, not even the data that
 * this poll has reported. Their connections resume in later turns, a few per turn, one per client in rotation: a client
 * with one connection never waits behind one with a hundred. New connections of heavy clients start in the same
 * order. Clients that were served before take precedence over strangers, since each of a crowd of addresses is as light as
 * they are.
 */
export class FairReading {
  readonly #clock: Clock;
  readonly #onPostponed: OnPostponed;
  readonly #shared: SharedUsage;
  readonly #clients: ReadingClients;
  readonly #waiting: WaitingClients;
  /** The clients of connections, and of connections to backends that are read for them. */
  readonly #owners = new WeakMap<Socket, ReadingClient>();
  /** The time as last read, in milliseconds. */
  #now = 0;
  /** The time by which usage decays, in milliseconds. It passes slowly while the loop is busy. */
  #age = 0;
  #busyUntil = 0;
  /** When the current turn began; undefined while no turn is timed. */
  #began: number | undefined;
  /** The time at which the current turn becomes too long. */
  #deadline = Infinity;
  #units = 0;
  #over = false;
  #accepted = false;
  /** Connections that started in the turn that accepted them. */
  #started = 0;

  /** @param shared the usage of clients in other threads; undefined if there are none. */
  constructor(
    clock: Clock,
    onPostponed: OnPostponed,
    shared: SharedUsage = new SharedUsage({ memory: usageMemory(1), row: 0 }, () => clock.now()),
  ) {
    this.#clock = clock;
    this.#onPostponed = onPostponed;
    this.#shared = shared;
    this.#clients = new ReadingClients(shared);
    this.#waiting = new WaitingClients(this.#clients, onPostponed);
  }

  /** The number of connections that wait for their turn. */
  get waiting(): number {
    return this.#waiting.connections;
  }

  /** Takes an accepted connection. @returns whether it may start now; otherwise call `postpone`. */
  accept(socket: Socket, name: string): boolean {
    const client = this.#clients.of(name);
    client.open += 1;
    this.#owners.set(socket, client);
    socket.once("close", () => {
      this.#leave(client, socket);
      client.open -= 1;
      if (client.open === 0) this.#clients.forget(name, this.#age);
    });
    this.#deadline = Math.min(this.#deadline, this.#turn() + ACCEPTING_MS);
    this.#accepted = true;
    this.#charge(client, UNITS.accept);
    const isLight = !this.#isBusy || !this.#waiting.isHeavy(client, this.#age);
    if (isLight && client.accepted.size === 0 && this.#mayStartNow(client)) {
      this.#started += 1;
      this.#start(client, socket);
      return true;
    }
    if (!isLight) this.#onPostponed("accept", name, 1);
    return false;
  }

  /** Stops reading an accepted connection, and begins it in its turn. */
  postpone(socket: Socket, begin: () => void): void {
    const client = this.#owners.get(socket);
    if (client === undefined) return;
    stopReading(socket);
    client.accepted.set(socket, () => {
      startReading(socket);
      this.#start(client, socket);
      begin();
    });
    this.#waiting.add(client);
  }

  /** Reads a connection through the socket that wraps it, since its TLS handshake is complete. */
  track(secured: Socket, accepted: Socket): void {
    const client = this.#owners.get(accepted);
    if (client === undefined) return;
    if (this.#leave(client, accepted)) startReading(accepted);
    client.reading.add(secured);
    this.#owners.set(secured, client);
    secured.once("close", () => void this.#leave(client, secured));
    this.#charge(client, UNITS.tlsHandshake);
  }

  /** Charges an upgrade, which opens a connection to a backend. */
  chargeUpgrade(connection: Socket): void {
    this.#chargeOwner(connection, UNITS.upgrade);
  }

  /** Charges a client for the cost of a login beyond that of another request. */
  chargeLogin(connection: Socket): void {
    this.#chargeOwner(connection, UNITS.login);
  }

  /**
   * Charges a client for one unit: a request, a part of a request or response body, or WebSocket frames.
   *
   * @param connection the client's connection.
   * @param backend the backend's connection, if the unit was read from it. It counts as the client's until `release`.
   */
  charge(connection: Socket, backend?: Socket): void {
    const client = this.#owners.get(connection);
    if (client === undefined) return;
    if (backend !== undefined && !this.#owners.has(backend)) {
      this.#owners.set(backend, client);
      client.reading.add(backend);
    }
    client.known = true;
    this.#charge(client, UNITS.request);
  }

  /**
   * A client got the complete response to a request with a valid token. It has priority over unknown clients for some
   * minutes.
   */
  served(connection: Socket): void {
    const client = this.#owners.get(connection);
    if (client === undefined || this.#now < client.servedUntil) return;
    client.servedUntil = this.#now + NOTE_SERVED_MS;
    this.#shared.served(client.bucket);
  }

  /** Whether a client was served in the last minutes, in any thread. @param name as in `accept`. */
  wasServed(name: string): boolean {
    return this.#shared.wasServed(this.#shared.bucketOf(name));
  }

  /** Detaches the backend's connection from the client. */
  release(backend: Socket): void {
    const client = this.#owners.get(backend);
    if (client === undefined) return;
    this.#owners.delete(backend);
    if (this.#leave(client, backend)) startReading(backend);
  }

  /** Whether a turn was too long a moment ago. */
  get #isBusy(): boolean {
    return this.#now < this.#busyUntil;
  }

  #mayStartNow({ bucket }: ReadingClient): boolean {
    if (this.#started < STARTS_PER_TURN) return true;
    return this.#started < STARTS_PER_TURN + SERVED_PER_TURN && this.#shared.wasServed(bucket);
  }

  #start(client: ReadingClient, socket: Socket): void {
    this.#charge(client, UNITS.start);
    client.reading.add(socket);
  }

  /** Returns whether the socket was waiting. */
  #leave(client: ReadingClient, socket: Socket): boolean {
    const waited = client.leave(socket);
    if (waited && client.waiting === 0) this.#waiting.delete(client);
    return waited;
  }

  #chargeOwner(connection: Socket, units: number): void {
    const client = this.#owners.get(connection);
    if (client !== undefined) this.#charge(client, units);
  }

  #charge(client: ReadingClient, units: number): void {
    this.#units += units;
    if (this.#units >= UNTIMED_UNITS) this.#turn();
    client.charge(units, this.#age);
    if (this.#now >= this.#deadline) this.#turnTooLong(client);
  }

  #readTime(): number {
    const now = this.#clock.monotonic();
    this.#age += (now - this.#now) / (this.#isBusy ? BUSY_DECAY : 1);
    this.#now = now;
    return now;
  }

  /** Returns when the current turn began. Starts to time it, unless it is being timed. */
  #turn(): number {
    const now = this.#readTime();
    if (this.#began !== undefined) return this.#began;
    this.#began = now;
    this.#deadline = now + TURN_MS;
    this.#over = false;
    this.#accepted = false;
    this.#started = 0;
    setImmediate(this.#onTurnEnd);
    return now;
  }

  /** Pauses the heaviest clients. If the turn is still too long after that, also pauses newcomers, and the one that is read. */
  #turnTooLong(current: ReadingClient): void {
    this.#waiting.pauseHeavy(this.#age, this.#over ? current : undefined);
    this.#over = true;
    this.#deadline = this.#now + ACCEPTING_MS;
    this.#busyUntil = this.#now + BUSY_MS;
  }

  readonly #onTurnEnd = (): void => {
    const end = this.#readTime();
    const lasted = end - (this.#began ?? end);
    this.#began = undefined;
    this.#deadline = Infinity;
    this.#units = 0;
    if (this.#isBusy) this.#clients.share(this.#age);
    if (this.#waiting.size === 0) return;
    const turn = { end, lasted, overran: this.#over, accepted: this.#accepted };
    this.#waiting.resumeAfter(turn, this.#age);
    if (this.#waiting.size > 0) this.#turn();
  };
}

/** Charges clients for the time that reading for them and writing to them takes. */
export type ClientReading = Pick<FairReading, "charge" | "chargeLogin" | "served" | "release">;

/** For exchanges without a client. */
export const UNMETERED: ClientReading = {
  charge: () => undefined,
  chargeLogin: () => undefined,
  served: () => undefined,
  release: () => undefined,
};
