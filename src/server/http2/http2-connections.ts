import type { Socket } from "node:net";
import { callEach } from "../../lib/async/isolation.ts";
import { trackMultiplexed } from "../request/current-responses.ts";
import { Http2Connection, type Http2ConnectionOptions } from "./http2-connection.ts";
import type { Http2Settings } from "./http2-session.ts";

/** How often connections are checked: this many times during the shortest time limit, within these bounds. */
const LOOKS_PER_TIMEOUT = 10;
const LOOK_EVERY_MS = { min: 10, max: 1_000 };

/** The HTTP/2 connections of a listener. */
export class Http2Connections {
  readonly #options: Http2ConnectionOptions;
  readonly #open = new Set<Http2Connection>();
  #settings: Http2Settings;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: Omit<Http2ConnectionOptions, "settings"> & Omit<Http2Settings, "offered">) {
    const { limits, timeouts } = options;
    this.#settings = { offered: false, limits, timeouts };
    this.#options = { ...options, settings: () => this.#settings };
  }

  /** Whether clients may choose HTTP/2. */
  get offered(): boolean {
    return this.#settings.offered;
  }

  /** Starts HTTP/2 on a connection whose sides have agreed on it. */
  accept(socket: Socket): void {
    if (socket.destroyed) return;
    const connection = new Http2Connection(socket, this.#options);
    this.#open.add(connection);
    trackMultiplexed(socket, connection);
    this.#options.buffered.track(socket, connection);
    socket.once("close", () => {
      this.#open.delete(connection);
      if (this.#open.size === 0) this.#look();
    });
    if (this.#timer === undefined) this.#look();
  }

  /** Applies new limits to open connections, or closes them if there is to be no HTTP/2. */
  change(settings: Http2Settings): void {
    this.#settings = settings;
    if (!settings.offered) this.close();
    callEach(this.#open, (connection) => connection.change());
  }

  /** Tells all clients to open new connections. Requests that they send until `close` are still served. */
  announceClose(): void {
    callEach(this.#open, (connection) => connection.announceClose());
  }

  /** Closes each connection after its current requests. */
  close(): void {
    callEach(this.#open, (connection) => connection.close());
  }

  /** Ends what takes too long, now and repeatedly while a connection is open. */
  #look(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#open.size === 0) return;
    callEach(this.#open, (connection) => connection.look());
    const { header, request, keepAlive } = this.#settings.timeouts;
    const wanted = Math.min(header, request, keepAlive) / LOOKS_PER_TIMEOUT;
    const { min, max } = LOOK_EVERY_MS;
    this.#timer = setTimeout(() => this.#look(), Math.min(Math.max(wanted, min), max)).unref();
  }
}
