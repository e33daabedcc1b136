import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import type { BufferHolder } from "../../core/request/transfer.ts";
import {
  allocateCounters,
  roundUpToUnit,
  SharedByteCounters,
} from "../../lib/async/shared-counts.ts";
import { cut } from "../request/cut-request.ts";
import { callEach } from "../../lib/async/isolation.ts";
import { headOf, responseOn } from "../../lib/node-internals/node-sockets.ts";
import { ServerResponse } from "../../lib/http/node-http.ts";
import { TrackedResponse } from "../request/tracked-response.ts";

/** Data for a TLS client is buffered twice: as plaintext and as ciphertext. */
const TLS_FACTOR = 2;
/**
 * The buffer into which Node reads ciphertext, in bytes. A TLS connection retains it once it was filled, which happens if a
 * client sends much at once: 900 TLS connections with requests queued behind a slow response took 80 KB each in addition to
 * the data, instead of 40. Counted while data that the client has sent is waiting.
 */
const TLS_READ_BYTES = 64 * 1024;
/** Node keeps the head of a response as text, too: 60 KB of buffered header fields took 186 KB of memory. */
const HEAD_COPIES = 2;

/**
 * Returns the memory of the data buffered for a connection, in bytes.
 *
 * @param held the bytes that others hold for it, such as pipelined requests.
 */
export function bytesBufferedOn(socket: Socket, held: number): number {
  const current = responseOn(socket);
  const response = current instanceof ServerResponse ? current : undefined;
  const isTls = socket instanceof TLSSocket;
  const head = response === undefined ? 0 : HEAD_COPIES * (headOf(response)?.length ?? 0);
  const unread = (response ?? socket).writableLength + head;
  const written = unread * (isTls ? TLS_FACTOR : 1);
  const unsent = held + (response?.req.readableLength ?? 0);
  const read = unsent > 0 && isTls ? TLS_READ_BYTES : 0;
  const transfer = response instanceof TrackedResponse ? response.transfer : undefined;
  return written + unsent + read + (transfer?.holder?.bufferedBytes ?? 0);
}

/**
 * Beyond this fraction of the budget a thread sheds its own connections, even if a much heavier client is on another
 * thread, down to a small fraction: the last bytes are those of clients that do nothing wrong.
 */
const FALLBACK = 5 / 4;
const SPARED = 1 / 16;
/**
 * A thread sheds its own client if that has at least this fraction of the bytes of the heaviest client, which is on another
 * thread. Otherwise only one thread at a time would shed a crowd of equal clients, more slowly than the crowd fills the
 * others.
 */
const NEARLY_HEAVIEST = 3 / 4;

/**
 * Returns the connections of the heaviest client, largest first. If this client is on another thread, that thread sheds it
 * in its next sweep, unless it hangs: then returns those of the heaviest client of this thread if it is nearly as heavy, or
 * if the budget is exceeded by far and this thread has a part in it.
 *
 * @param all the connections of this thread.
 * @param limit the budget of all threads together, in bytes.
 */
function heaviestClient(
  all: readonly Account[],
  counters: SharedByteCounters,
  limit: number,
): readonly Account[] | undefined {
  const heaviest = counters.heaviest();
  const found = heaviestIn(heaviest, all);
  if (found !== undefined) return found;
  let bucket = heaviest;
  let most = 0;
  for (const each of all) {
    if (each.bucket === undefined || each.bytes === 0) continue;
    const bytes = counters.bytesIn(each.bucket);
    if (bytes > most) [most, bucket] = [bytes, each.bucket];
  }
  const isFarBeyond = counters.total > limit * FALLBACK && counters.own > limit * SPARED;
  const isHeavy = most >= counters.bytesIn(heaviest) * NEARLY_HEAVIEST;
  return isFarBeyond || isHeavy ? heaviestIn(bucket, all) : undefined;
}

/** Returns the connections of the heaviest client in a bucket. Other clients in the same bucket are not charged for it. */
function heaviestIn(bucket: number, all: readonly Account[]): readonly Account[] | undefined {
  const bytesOf = new Map<string, number>();
  const inBucket = all.filter((each) => each.bucket === bucket && each.bytes > 0);
  for (const { client, bytes } of inBucket) {
    bytesOf.set(client, (bytesOf.get(client) ?? 0) + bytes);
  }
  const [heaviest] = [...bytesOf].toSorted(([, one], [, other]) => other - one);
  if (heaviest === undefined) return undefined;
  return inBucket
    .filter(({ client }) => client === heaviest[0])
    .toSorted((one, other) => other.bytes - one.bytes);
}

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
export class ConnectionLedger {
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

  /** Whether more than half of the budget is used. If so, buffer at most one chunk for each connection. */
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

  /** Counts the bytes of a holder towards a connection until the connection closes. */
  track(connection: Socket, holder: BufferHolder): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    (account.holders ??= []).push(holder);
    this.#setActive(account, true);
  }

  /**
   * Schedules a measurement of a connection within a quarter of a second. Call it when bytes pass; idle connections
   * are not measured.
   */
  touch(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account !== undefined && !account.active) this.#setActive(account, true);
  }

  /**
   * Measures the bytes buffered for a connection now. Call it after buffering many bytes; otherwise `touch` is
   * enough. If the budget is exceeded, closes connections of the client with the most bytes, possibly this one.
   */
  measure(connection: Socket): void {
    const account = this.#accounts.get(connection);
    if (account === undefined) return;
    this.#setActive(account, true);
    this.#count(account);
    if (this.#counters.total > this.#threshold) this.#measureAndShed();
  }

  /**
   * Reserves bytes that no client waits for, such as copies of requests: at most an eighth of the budget, and only
   * while memory is not scarce.
   *
   * @returns whether there was room; if so, the caller must `free` the bytes.
   */
  reserve(bytes: number): boolean {
    const reserved = this.#counters.bytesIn(this.#reservedBucket);
    if (this.scarce || reserved + bytes > this.#limit * RESERVABLE) return false;
    this.#setReserved(this.#reserved + bytes);
    return true;
  }

  /** Releases reserved bytes. */
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

/** The budget for all data buffered for clients, or because of them (`server.limits.bufferedBytes`). */
export type BufferedBytes = Pick<
  ConnectionLedger,
  "scarce" | "track" | "measure" | "touch" | "reserve" | "free"
>;

/** An unlimited budget, for exchanges without a client. */
export const UNLIMITED: BufferedBytes = {
  scarce: false,
  track: () => undefined,
  measure: () => undefined,
  touch: () => undefined,
  reserve: () => true,
  free: () => undefined,
};
