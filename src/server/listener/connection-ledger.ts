import type { Server, ServerResponse as Response } from "node:http";
import type { Socket } from "node:net";
import { Server as TlsServer, TLSSocket } from "node:tls";
import type { BufferedBytes, BufferHolder } from "../../core/buffered-bytes.ts";
import { ServerResponse } from "../../lib/http/node-http.ts";
import {
  roundUpToUnit,
  SharedByteCounters,
  allocateCounters,
} from "../../lib/async/shared-byte-counters.ts";
import { cut } from "../request/cut-request.ts";
import { TrackedResponse } from "../request/tracked-response.ts";

/** How often every open connection is measured, in milliseconds. */
const SWEEP_EVERY_MS = 250;
/** Connections are shed until this fraction of the budget is in use, so that the next byte does not shed again. */
const SHED_TO = 7 / 8;
/**
 * Beyond this fraction of the budget a thread sheds its own connections, even if the heaviest client is on another
 * thread.
 */
const FALLBACK = 5 / 4;
/** Data for a TLS client is buffered twice: as plaintext and as ciphertext. */
const TLS_FACTOR = 2;
/**
 * The buffer into which Node reads ciphertext, in bytes. A TLS connection keeps it once it was filled, which happens
 * to clients that send much at once. 900 TLS connections with requests behind a slow response took 80 KB each besides
 * the data, and 40 before.
 */
const TLS_READ_BYTES = 64 * 1024;

export interface ConnectionLedgerOptions {
  /** The budget of all threads together, in bytes. */
  readonly limit: number;
  /** The shared counters and the row of this thread; left out for a single thread. */
  readonly shared?: { readonly memory: SharedArrayBuffer; readonly row: number } | undefined;
  /** Called when connections were shed: how many, of which client, with how many bytes. */
  readonly shed: (connections: number, client: string, bytes: number) => void;
}

/** Returns the client of a connection. */
type ClientOf = (connection: Socket) => string;

/** What is buffered for one connection. */
interface Account {
  readonly socket: Socket;
  readonly clientOf: ClientOf;
  holders: BufferHolder[] | undefined;
  /** Computed when something is buffered for the first time, which most connections never need. */
  owner: Owner | undefined;
  /** The last measurement. */
  bytes: number;
}

interface Owner {
  readonly client: string;
  readonly bucket: number;
}

/**
 * The ledger of one thread. It keeps no running totals but measures: all connections periodically, and reported ones
 * at once. So no byte can be lost from the sum, and an ordinary request costs nothing.
 */
export class ConnectionLedger implements BufferedBytes {
  readonly #options: ConnectionLedgerOptions;
  readonly #counters: SharedByteCounters;
  readonly #accounts = new Map<Socket, Account>();
  #limit: number;
  /** Total bytes beyond which everything is measured again. */
  #threshold: number;
  #sweeping: NodeJS.Timeout | undefined;

  constructor(options: ConnectionLedgerOptions) {
    const { limit, shared = { memory: allocateCounters(1), row: 0 } } = options;
    this.#options = options;
    this.#counters = new SharedByteCounters(shared.memory, shared.row);
    this.#limit = limit;
    this.#threshold = limit;
  }

  /** The counters shared by all threads. */
  get memory(): SharedArrayBuffer {
    return this.#counters.memory;
  }

  /** Bytes buffered in this thread, as last measured. */
  get bytes(): number {
    return this.#counters.own;
  }

  get scarce(): boolean {
    return this.#counters.total > this.#limit / 2;
  }

  /** Changes the budget of all threads together, in bytes. */
  setLimit(limit: number): void {
    this.#limit = limit;
    this.#threshold = limit;
  }

  /** Tracks the connections of a server while they are open. */
  trackServer(server: Server, clientOf: ClientOf): void {
    const event = server instanceof TlsServer ? "secureConnection" : "connection";
    server.on(event, (socket: Socket) => {
      const account: Account = { socket, clientOf, holders: undefined, owner: undefined, bytes: 0 };
      this.#accounts.set(socket, account);
      socket.once("close", () => this.#close(account));
      this.#sweeping ??= setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref();
    });
  }

  track(connection: Socket, holder: BufferHolder): void {
    const account = this.#accounts.get(connection);
    if (account !== undefined) (account.holders ??= []).push(holder);
  }

  measure(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    this.#count(account);
    if (this.#counters.total > this.#threshold) this.#measureAndShed();
  }

  #close(account: Account): void {
    this.#accounts.delete(account.socket);
    this.#set(account, 0);
    if (this.#accounts.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }

  #count(account: Account): void {
    const { socket, holders = [] } = account;
    let held = 0;
    for (const holder of holders) held += holder.bufferedBytes;
    if (held > 0 && socket instanceof TLSSocket) held += TLS_READ_BYTES;
    this.#set(account, roundUpToUnit(bytesOn(socket) + held));
  }

  #set(account: Account, bytes: number): void {
    if (account.bytes === bytes) return;
    account.owner ??= this.#ownerOf(account);
    this.#counters.add(account.owner.bucket, bytes - account.bytes);
    account.bytes = bytes;
  }

  #ownerOf({ socket, clientOf }: Account): Owner {
    const client = clientOf(socket);
    return { client, bucket: this.#counters.bucketOf(client) };
  }

  #sweep(): void {
    for (const account of this.#accounts.values()) this.#count(account);
    if (this.#counters.total > this.#limit) this.#measureAndShed();
  }

  /** Measures everything, and sheds connections if that confirms the excess. */
  #measureAndShed(): void {
    for (const account of this.#accounts.values()) this.#count(account);
    if (this.#counters.total > this.#limit) this.#shed();
    // The measurement holds for a while: one more byte is no reason to repeat it.
    this.#threshold = Math.max(this.#limit, this.#counters.total + this.#limit / 16);
  }

  /** Closes the heaviest connections of the heaviest client, then of the next, until the budget has room. */
  #shed(): void {
    while (this.#counters.total > this.#limit * SHED_TO) {
      const bucket = this.#counters.heaviest();
      const heavy = this.#heaviestOf(bucket) ?? this.#fallback();
      if (heavy === undefined) return;
      this.#end(heavy);
    }
  }

  /** Returns the accounts of the heaviest client in a bucket, largest first; undefined if this thread has none. */
  #heaviestOf(bucket: number): Account[] | undefined {
    const bytesOf = new Map<string, number>();
    const accounts = [...this.#accounts.values()].filter(
      ({ owner, bytes }) => owner?.bucket === bucket && bytes > 0,
    );
    for (const { owner, bytes } of accounts) {
      if (owner !== undefined) bytesOf.set(owner.client, (bytesOf.get(owner.client) ?? 0) + bytes);
    }
    // Other clients in the same bucket are not charged for it.
    const [heaviest] = [...bytesOf].toSorted(([, one], [, other]) => other - one);
    if (heaviest === undefined) return undefined;
    return accounts
      .filter(({ owner }) => owner?.client === heaviest[0])
      .toSorted((one, other) => other.bytes - one.bytes);
  }

  /** The heaviest client is on another thread, which sheds it in its next sweep unless that thread hangs. */
  #fallback(): Account[] | undefined {
    if (this.#counters.total <= this.#limit * FALLBACK) return undefined;
    const bytesOf = new Map<number, number>();
    for (const { owner, bytes } of this.#accounts.values()) {
      if (owner !== undefined) bytesOf.set(owner.bucket, (bytesOf.get(owner.bucket) ?? 0) + bytes);
    }
    const [heaviest] = [...bytesOf].toSorted(([, one], [, other]) => other - one);
    return heaviest === undefined ? undefined : this.#heaviestOf(heaviest[0]);
  }

  #end(accounts: readonly Account[]): void {
    let connections = 0;
    let bytes = 0;
    for (const account of accounts) {
      if (this.#counters.total <= this.#limit * SHED_TO) break;
      connections += 1;
      bytes += account.bytes;
      cut(account.socket, "buffered_bytes");
      this.#close(account);
    }
    this.#options.shed(connections, accounts[0]?.owner?.client ?? "", bytes);
  }
}

/** 60 KB of buffered header fields took 186 KB of memory. */
const HEAD_COPIES = 2;

/** Returns what Node and the current request buffer for a connection. */
function bytesOn(socket: Socket): number {
  const response = responseOn(socket);
  const factor = socket instanceof TLSSocket ? TLS_FACTOR : 1;
  if (response === undefined) return socket.writableLength * factor;
  const holder = response instanceof TrackedResponse ? response.transfer?.holder : undefined;
  return (
    (response.writableLength + headLength(response)) * factor +
    response.req.readableLength +
    (holder?.bufferedBytes ?? 0)
  );
}

/**
 * Node keeps the head as text (`_header`) besides its encoded form, and the fields of the backend stand behind it, as
 * measured.
 */
function headLength(response: Response): number {
  const head: unknown = "_header" in response ? response._header : undefined;
  return typeof head === "string" ? HEAD_COPIES * head.length : 0;
}

/** Returns the response that a socket is writing, which Node keeps under this name. */
function responseOn(socket: Socket): Response | undefined {
  const response: unknown = "_httpMessage" in socket ? socket._httpMessage : undefined;
  return response instanceof ServerResponse ? response : undefined;
}
