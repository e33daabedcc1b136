import type { Server, Socket } from "node:net";
import { clientNetwork, unmapAddress } from "../../lib/http/networks.ts";
import { responsesOn, sayGoodbye } from "../request/tracked-response.ts";
import type { ListenOptions } from "./listen-options.ts";
import { readProxyHeader } from "./proxy-protocol/proxied-peer.ts";

/** The maximum number of open connections, in total and of one client. */
type ConnectionLimits = Pick<ListenOptions["limits"], "connections" | "connectionsPerAddress">;

/** The limit that one more connection would exceed. */
type ExceededLimit = "connections" | "connections_per_address";

/** The size of the table that counts connections by client if there are several threads; two rows take 128 KiB per thread. */
export const CONNECTION_TABLE = { rows: 2, slots: 2 ** 14 };

/** Clients that were served take precedence over strangers while they have at most this part of all connections. */
const SERVED_PART = 1 / 4;

/** An open connection. */
export interface Connection {
  /** The accepted socket. */
  readonly socket: Socket;
  /** The socket that carries requests: the accepted one, or the one that wraps it once its TLS handshake is complete. */
  carrier: Socket;
  /** The network of the peer. Behind a trusted proxy, each connection counts as a separate client. */
  readonly client: string;
  /** Removes it from the counts of all threads; undefined if this thread alone counts. */
  readonly release: (() => void) | undefined;
}

type OpenConnectionsOptions = Pick<
  ListenOptions,
  "counts" | "limits" | "timeouts" | "trustedProxies" | "proxyProtocol" | "reading" | "observer"
>;

/**
 * The open connections of a server. Closes those beyond its limits before any work is done for them, above all TLS, which
 * costs more than everything else.
 */
export class OpenConnections {
  limits: ConnectionLimits;
  /** The time for a header of the PROXY protocol, in milliseconds. */
  headerMs: number;
  readonly #options: OpenConnectionsOptions;
  readonly #admit: (connection: Connection) => void;
  readonly #bySocket = new Map<Socket, Connection>();
  /** Oldest first. A connection whose proxy has not named its client yet is in none of these. */
  readonly #byClient = new Map<string, Set<Connection>>();
  /** Those that carry another protocol after an upgrade. */
  readonly #switched = new WeakSet<Socket>();

  /**
   * @param server must not have listeners for `connection`.
   * @param admit starts an admitted connection, now or later.
   */
  constructor(
    server: Server,
    options: OpenConnectionsOptions,
    admit: (connection: Connection) => void,
  ) {
    this.limits = options.limits;
    this.headerMs = options.timeouts.header;
    this.#options = options;
    this.#admit = admit;
    server.on("connection", (socket: Socket) => {
      const { proxyProtocol, trustedProxies } = options;
      if (proxyProtocol && trustedProxies.has(unmapAddress(socket.remoteAddress ?? ""))) {
        this.#acceptBehind(socket);
      } else this.#accept(socket);
    });
    server.on("upgrade", ({ socket }: { socket: Socket }) => void this.#switched.add(socket));
  }

  [Symbol.iterator](): Iterator<Connection> {
    return this.#bySocket.values();
  }

  /** @param accepted the accepted socket. */
  get(accepted: Socket): Connection | undefined {
    return this.#bySocket.get(accepted);
  }

  #accept(socket: Socket): void {
    const peer = unmapAddress(socket.remoteAddress ?? "");
    // Many clients are behind a proxy, so it has no limit of its own.
    const isProxy = this.#options.trustedProxies.has(peer);
    const client = isProxy ? `${peer} ${socket.remotePort}` : clientNetwork(peer);
    const limited = isProxy ? undefined : client;
    let taken = this.#take(limited);
    if (taken === "connections" && this.#evictFor(client)) taken = this.#take(limited);
    if (typeof taken === "string") {
      this.#refuse(socket, taken);
      return;
    }
    const connection: Connection = { socket, carrier: socket, client, release: taken };
    this.#bySocket.set(socket, connection);
    const connections = this.#byClient.get(client) ?? new Set();
    this.#byClient.set(client, connections.add(connection));
    socket.once("close", () => this.#remove(connection));
    this.#admit(connection);
  }

  /** Accepts a connection once its proxy has named the client. Until then it counts towards the total only. */
  #acceptBehind(socket: Socket): void {
    const taken = this.#take(undefined);
    if (typeof taken === "string") {
      this.#refuse(socket, taken);
      return;
    }
    const waiting: Connection = { socket, carrier: socket, client: "", release: taken };
    this.#bySocket.set(socket, waiting);
    readProxyHeader(socket, this.headerMs, (accepted) => {
      this.#remove(waiting);
      if (!accepted) this.#options.observer.requestRefused("proxy_protocol");
      else if (!socket.destroyed) this.#accept(socket);
    });
  }

  /**
   * Counts a new connection, unless that would exceed a limit of all threads together.
   *
   * @param client the client to charge; undefined to count towards the total only.
   * @returns the exceeded limit, otherwise the `release` of the connection.
   */
  #take(client: string | undefined): (() => void) | ExceededLimit | undefined {
    const { counts } = this.#options;
    const { connections, connectionsPerAddress } = this.limits;
    if (counts === undefined) {
      if (this.#bySocket.size >= connections) return "connections";
      if (client === undefined) return undefined;
      const own = this.#byClient.get(client)?.size ?? 0;
      return own >= connectionsPerAddress ? "connections_per_address" : undefined;
    }
    const slots = counts.slotsOf(client);
    counts.change(slots, 1);
    const all = counts.total();
    const tooMany = client !== undefined && counts.countAt(slots) > connectionsPerAddress;
    if (all <= connections && !tooMany) return () => counts.change(slots, -1);
    counts.change(slots, -1);
    return all > connections ? "connections" : "connections_per_address";
  }

  #refuse(socket: Socket, exceeded: ExceededLimit): void {
    socket.destroy();
    this.#options.observer.requestRefused(exceeded);
  }

  #remove(connection: Connection): void {
    const { socket, client, release } = connection;
    if (this.#bySocket.get(socket) !== connection) return;
    this.#bySocket.delete(socket);
    const connections = this.#byClient.get(client);
    connections?.delete(connection);
    if (connections?.size === 0) this.#byClient.delete(client);
    release?.();
  }

  /**
   * Evicts the oldest connection without a permitted request of the client with the most connections: one that is idle, or
   * has sent only part of a head or a login. Does so only if that client has more connections than the newcomer would have.
   *
   * While clients that were served have few connections, strangers evict none of theirs, and they evict any stranger's: a
   * crowd of addresses has fewer connections each than any of them.
   *
   * @returns whether there is room now.
   */
  #evictFor(newcomer: string): boolean {
    const { reading, observer } = this.#options;
    const isServed = reading.wasServed(newcomer);
    const own = (this.#byClient.get(newcomer)?.size ?? 0) + 1;
    const served: Set<Connection>[] = [];
    const strangers: Set<Connection>[] = [];
    let servedConnections = 0;
    for (const [client, connections] of this.#byClient) {
      if (connections.size <= own && !isServed) continue;
      if (reading.wasServed(client)) {
        served.push(connections);
        servedConnections += connections.size;
      } else strangers.push(connections);
    }
    const fewServed = servedConnections <= this.#bySocket.size * SERVED_PART;
    const idle =
      this.#idleOfHeaviest(strangers, isServed && fewServed ? 0 : own) ??
      (fewServed ? undefined : this.#idleOfHeaviest(served, own));
    if (idle === undefined) return false;
    const { socket, carrier } = idle;
    this.#remove(idle);
    observer.requestRefused("connections");
    if (sayGoodbye(carrier)) setImmediate(() => void socket.destroy());
    else socket.destroy();
    return true;
  }

  /** Returns the oldest idle connection of the client with the most of those that have more than `least`. */
  #idleOfHeaviest(clients: readonly Set<Connection>[], least: number): Connection | undefined {
    let most = least;
    let idle: Connection | undefined;
    for (const connections of clients) {
      if (connections.size <= most) continue;
      const found = [...connections].find((each) => this.#isIdle(each));
      if (found === undefined) continue;
      most = connections.size;
      idle = found;
    }
    return idle;
  }

  #isIdle({ carrier }: Connection): boolean {
    if (this.#switched.has(carrier)) return false;
    for (const { permit } of responsesOn(carrier)) if (permit !== undefined) return false;
    return true;
  }
}
