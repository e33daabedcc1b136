import type { Server, Socket } from "node:net";
import { transportOf } from "../../lib/node-internals/tls-transport.ts";
import { responsesOn, sayGoodbye } from "../request/current-responses.ts";

/** The open connections by client, oldest first. */
export class ConnectionSlots {
  /** Each connection with the function that releases its slot. */
  readonly #byClient = new Map<string, Map<Socket, () => void>>();
  /** The TLS socket over an accepted connection, if any. */
  readonly #secured = new WeakMap<Socket, Socket>();
  readonly #switched = new WeakSet<Socket>();

  /** @param server its events `secureConnection` and `upgrade` show what a connection carries. */
  constructor(server: Server) {
    server.on("secureConnection", (socket: Socket) => {
      const below = transportOf(socket);
      if (below !== undefined) this.#secured.set(below, socket);
    });
    server.on("upgrade", ({ socket }: { socket: Socket }) => void this.#switched.add(socket));
  }

  /** @param release called once, when the connection closes or is evicted. */
  take(client: string, socket: Socket, release: () => void): void {
    const slots = this.#byClient.get(client) ?? new Map<Socket, () => void>();
    this.#byClient.set(client, slots.set(socket, release));
    socket.once("close", () => this.#remove(client, socket));
  }

  /**
   * Evicts the oldest connection without a permitted request of the client with the most connections: one that is idle, or
   * has sent only part of a head or a login. Does so only if that client has more connections than the newcomer would have.
   *
   * @returns whether a slot is free now.
   */
  evictFor(newcomer: string): boolean {
    let most = (this.#byClient.get(newcomer)?.size ?? 0) + 1;
    let heaviest: string | undefined;
    let idle: Socket | undefined;
    for (const [client, slots] of this.#byClient) {
      if (slots.size <= most) continue;
      const found = [...slots.keys()].find((socket) => this.#isIdle(socket));
      if (found === undefined) continue;
      most = slots.size;
      heaviest = client;
      idle = found;
    }
    if (heaviest === undefined || idle === undefined) return false;
    this.#remove(heaviest, idle);
    const ended = idle;
    if (sayGoodbye(this.#secured.get(ended) ?? ended)) setImmediate(() => void ended.destroy());
    else ended.destroy();
    return true;
  }

  #isIdle(accepted: Socket): boolean {
    const socket = this.#secured.get(accepted) ?? accepted;
    if (this.#switched.has(socket)) return false;
    for (const { permit } of responsesOn(socket)) if (permit !== undefined) return false;
    return true;
  }

  #remove(client: string, socket: Socket): void {
    const slots = this.#byClient.get(client);
    const release = slots?.get(socket);
    if (slots === undefined || release === undefined) return;
    slots.delete(socket);
    if (slots.size === 0) this.#byClient.delete(client);
    release();
  }
}
