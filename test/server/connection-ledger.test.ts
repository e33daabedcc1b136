/** Which clients lose their connections when the budget is exhausted. */
import { createServer } from "node:http";
import { connect, Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished, vi } from "vitest";
import { allocateCounters, SharedByteCounters } from "../../src/lib/async/shared-counts.ts";
import { ConnectionLedger } from "../../src/server/listener/connection-ledger.ts";
import { listening } from "../support/listening.ts";
import { until } from "../support/until.ts";

const LIMIT = 100 * 1024;

/** Creates a ledger in the first of two threads, with open connections of these clients and their buffered bytes. */
async function start(clients: readonly (readonly [name: string, bytes: number])[]) {
  const memory = allocateCounters(2);
  const shed: string[] = [];
  const ledger = new ConnectionLedger({
    limit: LIMIT,
    shared: { memory, row: 0 },
    shed: (_connections, client) => void shed.push(client),
  });
  const server = createServer();
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => {
    ledger.open(socket, clients[sockets.length]?.[0] ?? "");
    sockets.push(socket);
  });
  const standing = await listening(server);
  onTestFinished(() => standing[Symbol.asyncDispose]());
  for (const index of clients.keys()) {
    const client = connect(standing.port, "127.0.0.1").on("error", () => undefined);
    onTestFinished(() => void client.destroy());
    await until(() => sockets.length === index + 1);
  }
  // All are measured in the next sweep.
  for (const [index, socket] of sockets.entries()) {
    ledger.track(socket, { bufferedBytes: clients[index]?.[1] ?? 0 });
  }
  return { ledger, shed, sockets, otherThread: new SharedByteCounters(memory, 1) };
}

it("spares a client that shares its bucket with the heaviest", async () => {
  const weights = new SharedByteCounters(allocateCounters(1), 0);
  const heavy = "heavy";
  let light = "light";
  // Numbers, because with repeated letters the low bits of the hash are periodic, and might never match the bucket.
  for (let n = 0; weights.bucketOf(light) !== weights.bucketOf(heavy); n += 1) light = `light ${n}`;
  const clients = [[light, 60_000] as const, [heavy, 50_000] as const, [heavy, 50_000] as const];
  const { shed, sockets } = await start(clients);
  await until(() => shed.length > 0);
  expect(sockets.map(({ destroyed }) => destroyed)).toEqual([false, true, true]);
  expect(new Set(shed)).toEqual(new Set([heavy]));
});

it("sheds its share of many equal clients, even if the heaviest is on another thread", async () => {
  const { shed, otherThread } = await start([["here", 56 * 1024]]);
  otherThread.add((otherThread.bucketOf("here") + 1) % 1024, 60 * 1024);
  await until(() => shed.length > 0);
  expect(shed).toEqual(["here"]);
});

it("leaves a much heavier client to its own thread", async () => {
  const { ledger, shed, otherThread } = await start([["here", 20 * 1024]]);
  otherThread.add((otherThread.bucketOf("here") + 1) % 1024, 90 * 1024);
  await until(() => ledger.bytes > 0);
  // Two more sweeps.
  await delay(600);
  expect(shed).toEqual([]);
});

it("keeps a small client, although another thread exceeds the budget by far", async () => {
  const { ledger, shed, otherThread } = await start([["here", 4 * 1024]]);
  otherThread.add((otherThread.bucketOf("here") + 1) % 1024, 200 * 1024);
  await until(() => ledger.bytes > 0);
  // Two more sweeps.
  await delay(600);
  expect(shed).toEqual([]);
});

it("measures an idle connection again as soon as it is touched", async () => {
  const holder = { bufferedBytes: 0 };
  const clients = Array.from({ length: 60 }, () => ["here", 0] as const);
  const { ledger, sockets } = await start(clients);
  // By rotation, its turn would come after seven seconds.
  const socket = sockets.at(-1) as Socket;
  ledger.track(socket, holder);
  await delay(700);
  expect(ledger.bytes).toBe(0);
  holder.bufferedBytes = 40 * 1024;
  ledger.touch(socket);
  const began = performance.now();
  await until(() => ledger.bytes === 40 * 1024);
  expect(performance.now() - began).toBeLessThan(4_000);
  holder.bufferedBytes = 0;
  await until(() => ledger.bytes === 0);
});

interface Holder {
  readonly socket: Socket;
  readonly bufferedBytes: number;
  measured: number;
  bytes: number;
}

/** Creates a ledger that sweeps when the test says so, with this many connections. */
function startSweeping(count: number) {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  onTestFinished(() => void vi.useRealTimers());
  const ledger = new ConnectionLedger({ limit: LIMIT, shed: () => undefined });
  const holders = Array.from({ length: count }, (): Holder => {
    const holder = {
      socket: new Socket(),
      measured: 0,
      bytes: 0,
      get bufferedBytes(): number {
        holder.measured += 1;
        return holder.bytes;
      },
    };
    ledger.open(holder.socket, "here");
    ledger.track(holder.socket, holder);
    return holder;
  });
  const sweep = (times = 1) => void vi.advanceTimersByTime(250 * times);
  return { ledger, holders, sweep };
}

const measurements = (all: readonly Holder[]): number =>
  all.reduce((sum, { measured }) => sum + measured, 0);

it("measures idle connections in rotation, a fortieth in each sweep", () => {
  const { holders, sweep } = startSweeping(400);
  sweep();
  const first = measurements(holders);
  expect(first).toBeGreaterThanOrEqual(400);
  sweep(10);
  expect(measurements(holders) - first).toBeLessThanOrEqual(100);
  sweep(80);
  // Each was measured about twice in 90 sweeps.
  expect(Math.min(...holders.map(({ measured }) => measured))).toBeGreaterThanOrEqual(2);
  expect(Math.max(...holders.map(({ measured }) => measured))).toBeLessThanOrEqual(5);
});

it("measures active connections in each sweep, and detects new ones by itself", () => {
  const { ledger, holders, sweep } = startSweeping(80);
  const [one, other] = holders as [Holder, Holder];
  sweep();
  [one.bytes, other.bytes] = [8192, 8192];
  ledger.touch(one.socket);
  const [before, unseen] = [one.measured, other.measured];
  sweep(100);
  expect(one.measured - before).toBe(100);
  // It was detected in the first rotation of about 40 sweeps.
  expect(other.measured - unseen).toBeGreaterThan(50);
});

it("forgets closed connections", () => {
  const { ledger, holders, sweep } = startSweeping(3);
  for (const holder of holders) {
    holder.bytes = 8192;
    ledger.measure(holder.socket);
  }
  expect(ledger.bytes).toBe(3 * 8192);
  const before = measurements(holders);
  for (const { socket } of holders) socket.emit("close");
  sweep();
  expect([ledger.bytes, measurements(holders) - before, vi.getTimerCount()]).toEqual([0, 0, 0]);
});
