import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { AdminResponse } from "../../core/admin-page.ts";
import {
  type BufferedBytes,
  type ConnectionLedger,
  UNLIMITED,
} from "../listener/connection-ledger.ts";
import { unmapAddress } from "../../lib/http/networks.ts";
import { createServer } from "../../lib/http/node-http.ts";
import { changeOptions, takeListeners } from "../../lib/node-internals/node-sockets.ts";
import { adminResponse, type AdminSite } from "./admin-pages.ts";
import { failure } from "./state-pages.ts";
import { createClientErrorHandler } from "../listener/client-error.ts";
import { useLingeringClose } from "../listener/discard-body.ts";
import { listening } from "../listener/listening-sockets.ts";
import { UNMETERED } from "../listener/reading/fair-reading.ts";
import { serializePipelined } from "../listener/pipelining.ts";
import { requestIdOf } from "../request/intake.ts";
import { TrackedResponse } from "../request/tracked-response.ts";

const END_OF_HEAD = "\r\n\r\n";
/** Maximum bytes after the request to discard before the connection closes. */
const MAX_DISCARDED_BYTES = 64 * 1024;

/**
 * Limits a connection to one request. The HTTP parser gets nothing before the head is complete, and nothing after it: half
 * a head costs no parser, and pipelined requests beyond the first are discarded. Data that exceeds the maximum size of a
 * head is passed on unchanged: the parser reports why it is invalid. A connection that has sent more than that size after
 * its head is destroyed without an answer: its client would not read one, and a flood of such connections must cost little.
 *
 * @param headBytes the maximum size of a head, in bytes.
 * @param accept starts HTTP on the connection, from which it can read the head.
 * @returns a function that discards all further data, to be called when the parser has the head.
 */
function acceptSingleRequest(
  socket: Socket,
  headBytes: number,
  accept: (socket: Socket) => void,
): () => void {
  let arrived: Buffer = Buffer.alloc(0);
  let discarded = 0;

  function collect(chunk: Buffer): void {
    arrived = arrived.length === 0 ? chunk : Buffer.concat([arrived, chunk]);
    const end = arrived.indexOf(END_OF_HEAD);
    if (end === -1 && arrived.length <= headBytes) return;
    const head = end === -1 ? arrived : arrived.subarray(0, end + END_OF_HEAD.length);
    if (arrived.length - head.length > headBytes) return abandon();
    arrived = Buffer.alloc(0);
    socket.off("data", collect).off("end", abandon);
    socket.pause();
    socket.unshift(head);
    accept(socket);
    socket.resume();
  }

  function abandon(): void {
    socket.destroy();
  }

  function discard(chunk: Buffer | string): void {
    discarded += chunk.length;
    if (discarded > MAX_DISCARDED_BYTES) socket.destroy();
  }

  socket.on("data", collect).on("end", abandon);
  socket.on("error", () => socket.destroy());
  return () => {
    if (socket.listenerCount("data", discard) > 0) return;
    socket.removeAllListeners("data");
    socket.on("data", discard);
  };
}

/**
 * The phase of a connection, in the order of eviction: `idle` while nothing or only part of a head has arrived, or the
 * connection is closing; `reading` while the client reads its response; `answering` while a page creates one.
 */
const PHASES = ["idle", "reading", "answering"] as const;
type Phase = (typeof PHASES)[number];

/** One open connection. */
class AdminConnection {
  readonly socket: Socket;
  readonly client: string;
  readonly limits: PeerLimits;
  #phase: Phase = "idle";
  #timer: NodeJS.Timeout | undefined;

  constructor(socket: Socket, client: string, limits: PeerLimits) {
    this.socket = socket;
    this.client = client;
    this.limits = limits;
    socket.once("close", () => clearTimeout(this.#timer));
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Must be called when a request was read: on a connection without reuse, further data is discarded. */
  onRequestRead = (): void => undefined;

  /** Enters a phase. Calls `onTimeout` unless the next phase begins, or the connection closes, within `limitMs`. */
  enter(phase: Phase, limitMs?: number, onTimeout?: () => void): void {
    this.#phase = phase;
    clearTimeout(this.#timer);
    this.#timer =
      limitMs === undefined || onTimeout === undefined || this.socket.destroyed
        ? undefined
        : setTimeout(onTimeout, limitMs).unref();
  }
}

/**
 * A fixed number of slots that always has room for one more: a client that has its share evicts its own oldest
 * connection; if all slots are taken, the client with the most loses its oldest. So no one can keep out a client with
 * few connections.
 *
 * @returns a function that puts a new connection into a slot.
 */
function adminSlots(limits: PeerLimits, log: AdminOptions["log"]) {
  const { connections: all, perAddress } = limits;
  /** Oldest first. */
  const byClient = new Map<string, Set<AdminConnection>>();
  let count = 0;

  function heaviest(): ReadonlySet<AdminConnection> | undefined {
    let found: ReadonlySet<AdminConnection> | undefined;
    for (const slots of byClient.values()) {
      if (slots.size > (found?.size ?? 0)) found = slots;
    }
    return found;
  }

  function evict(slots: ReadonlySet<AdminConnection> = new Set()): void {
    const byAge = [...slots];
    const phase = PHASES.find((each) => byAge.some((slot) => slot.phase === each));
    const slot = byAge.find((each) => each.phase === phase);
    if (slot === undefined) return;
    remove(slot);
    slot.socket.destroy();
    log.debug("an admin connection gave way to another", { client: slot.client, phase });
  }

  function remove(slot: AdminConnection): void {
    const slots = byClient.get(slot.client);
    if (slots?.delete(slot) !== true) return;
    count -= 1;
    if (slots.size === 0) byClient.delete(slot.client);
  }

  return (socket: Socket, client: string): AdminConnection => {
    const own = byClient.get(client)?.size ?? 0;
    if (own >= perAddress) evict(byClient.get(client));
    else if (count >= all) evict(heaviest());
    const slot = new AdminConnection(socket, client, limits);
    const slots = byClient.get(client) ?? new Set();
    byClient.set(client, slots.add(slot));
    count += 1;
    socket.once("close", () => remove(slot));
    return slot;
  };
}

export interface AdminOptions extends AdminSite {
  /** 0 for a port chosen by the system. */
  readonly port: number;
  readonly nextId: () => number;
  /** Counts the bytes buffered for connections; without it, there is no budget. */
  readonly buffered?: BufferedBytes & Pick<ConnectionLedger, "open">;
}

export interface Admin {
  readonly address: string;
  readonly port: number;
  /** Stops listening. Pending responses may finish for at most a second. */
  close(): Promise<void>;
}

/** How long pending responses may take when the listener closes, in milliseconds. */
const CLOSE_TIMEOUT_MS = 1000;

/** The limits of one class of peers. Times are in milliseconds. */
interface PeerLimits {
  /** The maximum number of open connections, in total and per address; one more evicts an older one. */
  readonly connections: number;
  readonly perAddress: number;
  /** The maximum size of a head, in bytes. */
  readonly headBytes: number;
  /** For a head to arrive; undefined if Node's own timeout applies. */
  readonly headMs: number | undefined;
  /** For a page to create its response. */
  readonly pageMs: number | undefined;
  /** For a client to read its response. */
  readonly readMs: number;
  /** Whether a connection may be reused. */
  readonly keepAlive: boolean;
}

/** Peers in `admin.allow`. They may ask to explain oversized requests: four times what the main listener accepts. */
const ALLOWED_LIMITS: PeerLimits = {
  connections: 256,
  perAddress: 256,
  headBytes: 64 * 1024,
  keepAlive: true,
  headMs: undefined,
  pageMs: undefined,
  readMs: 10_000,
};

/**
 * All other peers that reach the port, including the kubelet and Prometheus. A page that a backend answers takes at most
 * 10 s.
 */
const OTHER_LIMITS: PeerLimits = {
  connections: 256,
  perAddress: 16,
  headBytes: 8 * 1024,
  keepAlive: false,
  headMs: 2_000,
  pageMs: 12_000,
  readMs: 5_000,
};

/** The limits on pipelined requests of one connection. */
const PIPELINING_LIMITS = { requests: 8, strings: 320 };

/**
 * The backlog of connections to accept: 64 neighbours opened 1,280 together in the soak test; beyond it, Linux drops SYNs,
 * and clients wait a second. With more, the kubelet would wait longer behind a flood: libuv accepts one connection per turn,
 * at 180 µs of CPU time each.
 */
const BACKLOG = 2_048;

/**
 * Starts the admin listener: plain HTTP with the given pages and small limits, independent of the main listener. No
 * peer is refused: if connections run short, the client with the most loses its oldest. Rejects if it cannot bind the
 * address.
 */
export async function startAdmin(options: AdminOptions): Promise<Admin> {
  const { nextId, buffered, log } = options;
  const server = createServer({
    requestTimeout: 10_000,
    headersTimeout: 5_000,
    connectionsCheckingInterval: 1_000,
    requireHostHeader: false,
    optimizeEmptyRequests: true,
    ServerResponse: TrackedResponse,
  });
  const connections = acceptConnections(server, options);
  const answer = serializePipelined({
    handler: {
      handle(request, response) {
        const connection = connections.get(request.socket);
        if (connection !== undefined) respond(request, response, connection, options);
      },
    },
    refused: () => log.debug("an admin connection was ended: too many requests wait on it"),
    buffered: buffered ?? UNLIMITED,
    reading: UNMETERED,
    limits: PIPELINING_LIMITS,
  });
  server.on("request", answer);
  server.on("checkExpectation", (request: IncomingMessage, response: TrackedResponse) => {
    const connection = connections.get(request.socket);
    response.id = nextId();
    if (connection !== undefined) {
      connection.onRequestRead();
      send(response, failure(417, "The expectation cannot be met"), connection);
    }
  });
  const observer = { requestRefused() {}, requestStarted() {}, requestFinished() {} };
  const refuse = createClientErrorHandler({ nextId, rules: { current: { realm: "" } }, observer });
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    connections.get(socket)?.onRequestRead();
    refuse(error, socket);
  });
  const { host, port } = options;
  const bound = await listening(server, { host, port, backlog: BACKLOG });
  server.on("error", (error) => log.error("admin listener failed", { error }));
  return { address: bound.host, port: bound.port, close: () => closed(server, connections) };
}

/** Gives each connection a slot before Node reads from it. Must be called once. */
function acceptConnections(
  server: Server,
  { allow, buffered, log }: AdminOptions,
): ReadonlyMap<Socket, AdminConnection> {
  const connections = new Map<Socket, AdminConnection>();
  const accept = takeListeners(server, "connection");
  const takeAllowed = adminSlots(ALLOWED_LIMITS, log);
  const takeOther = adminSlots(OTHER_LIMITS, log);
  server.on("connection", (socket: Socket) => {
    // The address itself: pods of a node, and its kubelet, often share a /64.
    const peer = unmapAddress(socket.remoteAddress ?? "");
    const limits = allow.has(peer) ? ALLOWED_LIMITS : OTHER_LIMITS;
    const connection = (limits === ALLOWED_LIMITS ? takeAllowed : takeOther)(socket, peer);
    connections.set(socket, connection);
    socket.once("close", () => connections.delete(socket));
    useLingeringClose(socket);
    buffered?.open(socket, peer);
    // Node reads the limit when it starts reading from a connection.
    const begin = (): void => {
      changeOptions(server, { maxHeaderSize: limits.headBytes });
      accept(socket);
    };
    if (limits.keepAlive) begin();
    else connection.onRequestRead = acceptSingleRequest(socket, limits.headBytes, begin);
    connection.enter("idle", limits.headMs, () => {
      const error = Object.assign(new Error("no head"), { code: "ERR_HTTP_REQUEST_TIMEOUT" });
      server.emit("clientError", error, socket);
    });
  });
  return connections;
}

function respond(
  request: IncomingMessage,
  response: TrackedResponse,
  connection: AdminConnection,
  options: AdminOptions,
): void {
  response.id = options.nextId();
  connection.onRequestRead();
  const answer = adminResponse(request, options);
  if (!(answer instanceof Set)) {
    send(response, answer, connection);
    return;
  }
  const deliver = (late: AdminResponse): void => {
    answer.delete(deliver);
    send(response, late, connection);
  };
  answer.add(deliver);
  response.once("close", () => answer.delete(deliver));
  connection.enter("answering", connection.limits.pageMs, () =>
    deliver(failure(503, "This page took too long")),
  );
}

/** The only place that writes responses. Does not wait for a request body; Node omits the response body for HEAD. */
function send(response: TrackedResponse, answer: AdminResponse, connection: AdminConnection): void {
  if (response.headersSent || response.destroyed) return;
  const { headers } = response.req;
  const { status, allow } = answer;
  const isJson = "json" in answer;
  const type = isJson ? "application/json" : answer.type;
  const body = isJson
    ? `${JSON.stringify({ id: response.id, ...answer.json }, undefined, 2)}\n`
    : answer.body;
  const bodyFollows = headers["transfer-encoding"] ?? Number(headers["content-length"]) > 0;
  if (!connection.limits.keepAlive || bodyFollows !== false) response.shouldKeepAlive = false;
  response.whole = true;
  connection.enter("reading", connection.limits.readMs, () => connection.socket.destroy());
  response.once("finish", () => connection.enter("idle"));
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Request-Id": requestIdOf(headers["x-request-id"], response.id),
    ...("headers" in answer ? answer.headers : {}),
    ...(allow === undefined ? {} : { Allow: allow }),
  });
  response.end(body);
}

async function closed(server: Server, open: ReadonlyMap<Socket, AdminConnection>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  server.close(() => resolve());
  const timer = setTimeout(() => {
    for (const socket of open.keys()) socket.destroy();
  }, CLOSE_TIMEOUT_MS);
  await promise;
  clearTimeout(timer);
}
