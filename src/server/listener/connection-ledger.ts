import type { Socket } from "node:net";
import { ReservedBytes } from "../../lib/async/reserved-bytes.ts";
import type { BufferedBytes, BufferHolder } from "../../core/buffered-bytes.ts";
import {
  roundUpToUnit,
  SharedByteCounters,
  allocateCounters,
} from "../../lib/async/shared-byte-counters.ts";
import { ActiveEntries, type Activity } from "../../lib/async/active-entries.ts";
import { cut } from "../request/cut-request.ts";
import { bytesBufferedOn } from "./bytes-buffered.ts";

/** How often active connections, and those with bytes waiting, are measured, in milliseconds. */
const SWEEP_EVERY_MS = 250;
/** A connection with at most this many bytes, the size of a head, is not measured again until bytes pass. */
const IDLE_BYTES = 4096;
/** Connections are shed until this fraction of the budget is in use, so that the next byte does not cause more shedding. */
const SHED_TO = 7 / 8;
/**
 * Beyond this fraction of the budget a thread sheds its own connections, even if a much heavier client is on another
 * thread.
 */
const FALLBACK = 5 / 4;
/**
 * A thread sheds its own client if that has at least this fraction of the bytes of the heaviest client, which is on another
 * thread. Otherwise only one thread at a time would shed a crowd of equal clients, more slowly than the crowd fills the
 * others.
 */
const NEARLY_HEAVIEST = 3 / 4;
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
interface Account extends Activity {
  readonly socket: Socket;
  readonly client: string;
  /** The counter of the client. */
  readonly bucket: number;
  holders: BufferHolder[] | undefined;
  /** The last measurement. */
  bytes: number;
}

/**
 * The ledger of one thread. It has no running totals but measures: reported connections at once, active ones and those with
 * bytes waiting periodically, and idle ones in rotation. So the sum cannot drift, and an open connection costs next to
 * nothing.
 */
export class ConnectionLedger implements BufferedBytes {
  readonly #options: ConnectionLedgerOptions;
  readonly #counters: SharedByteCounters;
  readonly #accounts = new ActiveEntries<Socket, Account>();
  #limit: number;
  /** Total bytes beyond which everything is measured again. */
  #threshold: number;
  #sweeping: NodeJS.Timeout | undefined;
  readonly #reserved: ReservedBytes;

  constructor(options: ConnectionLedgerOptions) {
    const { limit, shared = { memory: allocateCounters(1), row: 0 } } = options;
    this.#options = options;
    this.#counters = new SharedByteCounters(shared.memory, shared.row);
    this.#limit = limit;
    this.#threshold = limit;
    this.#reserved = new ReservedBytes(this.#counters);
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
    const bucket = this.#counters.bucketOf(client);
    const account: Account = { socket, client, bucket, holders: undefined, bytes: 0, active: true };
    this.#accounts.add(socket, account);
    socket.once("close", () => this.#close(account));
    this.#sweeping ??= setInterval(() => this.#sweep(), SWEEP_EVERY_MS).unref();
  }

  track(connection: Socket, holder: BufferHolder): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    (account.holders ??= []).push(holder);
    this.#accounts.activate(account);
  }

  touch(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account !== undefined) this.#accounts.activate(account);
  }

  measure(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    this.#accounts.activate(account);
    this.#count(account);
    if (this.#counters.total > this.#threshold) this.#measureAndShed();
  }

  reserve(bytes: number): boolean {
    return !this.scarce && this.#reserved.take(bytes, this.#limit * RESERVABLE);
  }

  free(bytes: number): void {
    this.#reserved.free(bytes);
  }

  #close(account: Account): void {
    this.#accounts.remove(account.socket);
    this.#set(account, 0);
    if (this.#accounts.size > 0) return;
    clearInterval(this.#sweeping);
    this.#sweeping = undefined;
  }

  #count(account: Account): void {
    let held = 0;
    for (const holder of account.holders ?? []) held += holder.bufferedBytes;
    this.#set(account, roundUpToUnit(bytesBufferedOn(account.socket, held)));
  }

  #set(account: Account, bytes: number): void {
    if (account.bytes === bytes) return;
    this.#counters.add(account.bucket, bytes - account.bytes);
    account.bytes = bytes;
  }

  #sweep(): void {
    this.#accounts.sweep((account) => {
      const before = account.bytes;
      this.#count(account);
      return account.bytes > IDLE_BYTES || account.bytes !== before;
    });
    if (this.#counters.total > this.#limit) this.#measureAndShed();
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
      const bucket = this.#counters.heaviest();
      const heavy = this.#heaviestOf(bucket) ?? this.#heaviestHere(bucket);
      if (heavy === undefined) return;
      this.#end(heavy);
    }
  }

  /** Returns the accounts of the heaviest client in a bucket, largest first; undefined if this thread has none. */
  #heaviestOf(bucket: number): Account[] | undefined {
    const bytesOf = new Map<string, number>();
    const accounts = [...this.#accounts.values()].filter(
      (account) => account.bucket === bucket && account.bytes > 0,
    );
    for (const { client, bytes } of accounts) {
      bytesOf.set(client, (bytesOf.get(client) ?? 0) + bytes);
    }
    // Other clients in the same bucket are not charged for it.
    const [heaviest] = [...bytesOf].toSorted(([, one], [, other]) => other - one);
    if (heaviest === undefined) return undefined;
    return accounts
      .filter(({ client }) => client === heaviest[0])
      .toSorted((one, other) => other.bytes - one.bytes);
  }

  /**
   * The heaviest client is on another thread, which sheds it in its next sweep unless that thread hangs. Returns the
   * accounts of the heaviest client of this thread if it is nearly as heavy, or if the budget is exceeded by far.
   */
  #heaviestHere(heaviest: number): Account[] | undefined {
    let bucket = heaviest;
    let most = 0;
    for (const account of this.#accounts.values()) {
      if (account.bytes === 0) continue;
      const all = this.#counters.bytesIn(account.bucket);
      if (all > most) [most, bucket] = [all, account.bucket];
    }
    const isFarBeyond = this.#counters.total > this.#limit * FALLBACK;
    const isHeavy = most >= this.#counters.bytesIn(heaviest) * NEARLY_HEAVIEST;
    return isFarBeyond || isHeavy ? this.#heaviestOf(bucket) : undefined;
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
