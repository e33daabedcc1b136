import type { Socket } from "node:net";
import type { BufferedBytes, BufferHolder } from "../../core/buffered-bytes.ts";
import {
  roundUpToUnit,
  SharedByteCounters,
  allocateCounters,
} from "../../lib/async/shared-byte-counters.ts";
import { cut } from "../request/cut-request.ts";
import { bytesBufferedOn } from "./bytes-buffered.ts";
import { heaviestClient } from "./heaviest-client.ts";
import { callEach } from "../../lib/async/isolation.ts";

/** How often active connections, and those with bytes waiting, are measured, in milliseconds. */
const SWEEP_EVERY_MS = 250;
/** The number of sweeps in which every idle connection is measured once, so that no change is missed for long. */
const SWEEPS_OF_IDLE = 40;
/** A connection with at most this many bytes, the size of a head, is not measured again until bytes pass. */
const IDLE_BYTES = 4096;
/** Connections are shed until this fraction of the budget is in use, so that the next byte does not cause more shedding. */
const SHED_TO = 7 / 8;
/** Buffers that no client waits for, such as copies for mirrors, take at most this fraction of the budget. */
const RESERVABLE = 1 / 8;

export interface ConnectionLedgerOptions {
  /** The budget of all threads together, in bytes. */
  readonly limit: number;
  /** The shared counters and the row of this thread; omitted if there is only one thread. */
  readonly shared?: { readonly memory: SharedArrayBuffer; readonly row: number } | undefined;
  /** Called when connections of a client were shed, with their number and their bytes. */
  readonly shed: (connections: number, client: string, bytes: number) => void;
}

/** The bytes buffered for one connection. */
interface Account {
  readonly socket: Socket;
  readonly client: string;
  holders: BufferHolder[] | undefined;
  /** The counter of the client, computed when something is buffered for the first time. Most connections never need it. */
  bucket: number | undefined;
  /** The last measurement. */
  bytes: number;
  /** Whether each sweep measures it. */
  active: boolean;
}

/**
 * The ledger of one thread. It has no running totals but measures: reported connections at once, active ones and those with
 * bytes waiting periodically, and idle ones in rotation. So the sum cannot drift, and an open connection costs next to
 * nothing.
 */
export class ConnectionLedger implements BufferedBytes {
  readonly #options: ConnectionLedgerOptions;
  readonly #counters: SharedByteCounters;
  readonly #accounts = new Map<Socket, Account>();
  readonly #active = new Set<Account>();
  /** Where the next sweep continues with the idle connections. */
  #rotation: Iterator<Account> | undefined;
  #limit: number;
  /** Total bytes beyond which everything is measured again. */
  #threshold: number;
  #sweeping: NodeJS.Timeout | undefined;
  readonly #reservedBucket: number;
  #reserved = 0;

  constructor(options: ConnectionLedgerOptions) {
    const { limit, shared = { memory: allocateCounters(1), row: 0 } } = options;
    this.#options = options;
    this.#counters = new SharedByteCounters(shared.memory, shared.row);
    this.#limit = limit;
    this.#threshold = limit;
    // No client has an empty name.
    this.#reservedBucket = this.#counters.bucketOf("");
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

  /** Measures a connection that carries requests until it closes. */
  open(socket: Socket, client: string): void {
    const account: Account = {
      socket,
      client,
      holders: undefined,
      bucket: undefined,
      bytes: 0,
      active: true,
    };
    this.#accounts.set(socket, account);
    this.#active.add(account);
    socket.once("close", () => this.#close(account));
    this.#sweeping ??= setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref();
  }

  track(connection: Socket, holder: BufferHolder): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    (account.holders ??= []).push(holder);
    this.#setActive(account, true);
  }

  touch(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account !== undefined && !account.active) this.#setActive(account, true);
  }

  measure(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    this.#setActive(account, true);
    this.#count(account);
    if (this.#counters.total > this.#threshold) this.#measureAndShed();
  }

  reserve(bytes: number): boolean {
    const reserved = this.#counters.bytesIn(this.#reservedBucket);
    if (this.scarce || reserved + bytes > this.#limit * RESERVABLE) return false;
    this.#setReserved(this.#reserved + bytes);
    return true;
  }

  free(bytes: number): void {
    this.#setReserved(this.#reserved - bytes);
  }

  #setReserved(bytes: number): void {
    const change = roundUpToUnit(bytes) - roundUpToUnit(this.#reserved);
    this.#counters.add(this.#reservedBucket, change);
    this.#reserved = bytes;
  }

  #setActive(account: Account, active: boolean): void {
    account.active = active;
    if (active) this.#active.add(account);
    else this.#active.delete(account);
  }

  #close(account: Account): void {
    this.#accounts.delete(account.socket);
    this.#active.delete(account);
    if (account.bytes > 0) this.#set(account, 0);
    if (this.#accounts.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
    this.#rotation = undefined;
  }

  #count(account: Account): void {
    let held = 0;
    for (const holder of account.holders ?? []) held += holder.bufferedBytes;
    const bytes = roundUpToUnit(bytesBufferedOn(account.socket, held));
    if (account.bytes !== bytes) this.#set(account, bytes);
  }

  #set(account: Account, bytes: number): void {
    account.bucket ??= this.#counters.bucketOf(account.client);
    this.#counters.add(account.bucket, bytes - account.bytes);
    account.bytes = bytes;
  }

  /** Measures all active connections and the next few idle ones. */
  #sweep(): void {
    callEach(this.#active, (account) => this.#look(account));
    let left = Math.ceil((this.#accounts.size - this.#active.size) / SWEEPS_OF_IDLE);
    for (; left > 0; left -= 1) {
      this.#rotation ??= this.#accounts.values();
      const next = this.#rotation.next();
      if (next.done === true) this.#rotation = undefined;
      else if (!next.value.active) this.#look(next.value);
    }
    if (this.#counters.total > this.#limit) this.#measureAndShed();
  }

  #look(account: Account): void {
    const before = account.bytes;
    this.#count(account);
    this.#setActive(account, account.bytes > IDLE_BYTES || account.bytes !== before);
  }

  /** Measures everything, and sheds connections if that confirms the excess. */
  #measureAndShed(): void {
    for (const account of this.#accounts.values()) this.#count(account);
    if (this.#counters.total > this.#limit) this.#shed();
    // The measurement stays valid for a while: one more byte is no reason to repeat it.
    this.#threshold = Math.max(this.#limit, this.#counters.total + this.#limit / 16);
  }

  /** Closes the heaviest connections of the heaviest client, then of the next, until the budget has room. */
  #shed(): void {
    while (this.#counters.total > this.#limit * SHED_TO) {
      const heavy = heaviestClient([...this.#accounts.values()], this.#counters, this.#limit);
      if (heavy === undefined) return;
      this.#end(heavy);
    }
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
    this.#options.shed(connections, accounts[0]?.client ?? "", bytes);
  }
}
