import type { Socket } from "node:net";
import { trackMultiplexed } from "../request/current-responses.ts";
import type { Http2Limits } from "./http2-session.ts";
import { Http2Connection, type Http2ConnectionOptions } from "./http2-connection.ts";

/** What a reload may change. */
interface Http2Settings {
  readonly offered: boolean;
  readonly limits: Http2Limits;
}

/** The HTTP/2 connections of a listener. */
export class Http2Connections {
  readonly #options: Http2ConnectionOptions;
  readonly #open = new Set<Http2Connection>();

  #settings: Http2Settings;

  constructor(options: Omit<Http2ConnectionOptions, "limits"> & Pick<Http2Settings, "limits">) {
    this.#settings = { offered: false, limits: options.limits };
    this.#options = { ...options, limits: () => this.#settings.limits };
  }

  /** Whether clients may choose HTTP/2. */
  get offered(): boolean {
    return this.#settings.offered;
  }

  /** Starts HTTP/2 on a connection that has agreed on it. */
  accept(socket: Socket): void {
    if (socket.destroyed) return;
    const connection = new Http2Connection(socket, this.#options);
    this.#open.add(connection);
    trackMultiplexed(socket, connection.responses);
    this.#options.buffered.track(socket, connection);
    socket.once("close", () => this.#open.delete(connection));
  }

  /** Applies new limits to open connections, or closes them if there is to be no HTTP/2. */
  change(settings: Http2Settings): void {
    this.#settings = settings;
    if (!settings.offered) this.close();
    for (const connection of this.#open) connection.change(settings.limits);
  }

  /** Tells all clients to open other connections. What they send until `close` is still served. */
  announceClose(): void {
    for (const connection of this.#open) connection.announceClose();
  }

  /** Closes each connection after the requests that are under way. */
  close(): void {
    for (const connection of this.#open) connection.close();
  }
}
