/**
 * Which clients are read from in a turn of the event loop that would take too long. The test sets the time; sockets are
 * real.
 */
import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { startReading, stopReading } from "../../src/lib/node-internals/node-sockets.ts";
import { FairReading } from "../../src/server/listener/reading/fair-reading.ts";
import { SharedUsage, usageMemory } from "../../src/server/listener/reading/reading-client.ts";
import { listening } from "../support/listening.ts";
import { countTurns } from "../support/loop-turns.ts";
import { until } from "../support/until.ts";

/** The time of each piece, in milliseconds of the test's clock. */
const PIECE_MS = 5;

interface Read {
  readonly client: string;
  readonly turn: number;
}

/** Accepts a connection, and begins it at once or in its turn, as the listener does. */
function accept(reading: FairReading, socket: Socket, client: string, begin: () => void): void {
  if (reading.accept(socket, client)) begin();
  else reading.postpone(socket, begin);
}

/** Starts a server with fair reading. The first word on a connection names its client. */
async function start(shared?: SharedUsage) {
  let time = 0;
  const turns = countTurns();
  const postponed: string[] = [];
  const record = (what: string, client: string) => void postponed.push(`${what} ${client}`);
  const reading = new FairReading({ now: () => 0, monotonic: () => time }, record, shared);
  const reads: Read[] = [];
  const sockets = new Map<Socket, string>();
  let whenHeld = (): void => undefined;
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", (name: Buffer) => {
      const client = name.toString();
      sockets.set(socket, client);
      accept(reading, socket, client, () => undefined);
      socket.on("data", () => {
        time += PIECE_MS;
        reads.push({ client, turn: turns() });
        reading.charge(socket);
        if (reading.waiting === 0) return;
        whenHeld();
        whenHeld = () => undefined;
      });
    });
  });
  const { port } = await listening(server);
  onTestFinished(() => {
    for (const socket of sockets.keys()) socket.destroy();
    server.close();
  });
  return {
    reading,
    reads,
    postponed,
    /** The server's sockets, in order of arrival. */
    sockets: () => [...sockets.keys()],
    /** Calls back once, when connections wait for the first time. */
    whenHeld: (call: () => void) => void (whenHeld = call),
    pass: (milliseconds: number) => void (time += milliseconds),
    async open(client: string, count = 1): Promise<Socket[]> {
      const before = sockets.size;
      const opened = Array.from({ length: count }, () => connect(port, "127.0.0.1"));
      for (const socket of opened) socket.setNoDelay().on("error", () => undefined);
      onTestFinished(() => opened.forEach((socket) => socket.destroy()));
      await Promise.all(opened.map((socket) => once(socket, "connect")));
      for (const socket of opened) socket.write(client);
      await until(() => sockets.size === before + count && reading.waiting === 0);
      return opened;
    },
  };
}

function mostInOneTurn(reads: readonly Read[]): number {
  const counts = new Map<number, number>();
  for (const { turn } of reads) counts.set(turn, (counts.get(turn) ?? 0) + 1);
  return Math.max(...counts.values());
}

/** Sends on all sockets, so that all bytes are there before the server reads in its next turn. */
async function sendAtOnce(sockets: readonly Socket[]): Promise<void> {
  await Promise.all(sockets.map((socket) => new Promise((sent) => void socket.write("x", sent))));
}

async function turnsPass(count: number): Promise<void> {
  for (let passed = 0; passed < count; passed += 1) await nextTurn();
}

it("ends a turn that takes too long, and continues reading in the next turns", async () => {
  const { open, pass, reads } = await start();
  const crowd = await open("crowd", 200);
  pass(10_000);
  await sendAtOnce(crowd);
  await until(() => reads.length === 200);
  expect(mostInOneTurn(reads)).toBeLessThan(50);
});

it("does not read from a waiting connection when Node resumes it", async () => {
  const { open, pass, reads, sockets, whenHeld } = await start();
  const crowd = await open("crowd", 200);
  // So does Node's HTTP server, once it has the connection.
  for (const socket of sockets()) socket.on("resume", () => startReading(socket));
  pass(10_000);
  whenHeld(() => {
    for (const socket of sockets()) socket.emit("resume");
  });
  await sendAtOnce(crowd);
  await until(() => reads.length === 200);
  expect(mostInOneTurn(reads)).toBeLessThan(50);
});

it("reads from a client with one connection before most of a client with hundreds", async () => {
  const { open, pass, reads } = await start();
  const crowd = await open("crowd", 200);
  const [single] = await open("single");
  pass(10_000);
  await sendAtOnce([...crowd, ...(single === undefined ? [] : [single])]);
  await until(() => reads.length === 201);
  expect(reads.findIndex(({ client }) => client === "single")).toBeLessThan(50);
});

it("resumes the lightest clients first", async () => {
  const { open, pass, reading, reads, sockets, whenHeld } = await start();
  const names = Array.from({ length: 40 }, (_, rank) => String(rank).padStart(2, "0"));
  const crowd: Socket[] = [];
  // The heaviest arrive first.
  for (const name of names.toReversed()) crowd.push(...(await open(name)));
  pass(10_000);
  for (const [index, socket] of sockets().entries()) {
    for (let unit = 0; unit < 2_000 - 20 * index; unit += 1) reading.charge(socket);
  }
  await turnsPass(2);
  let before = 0;
  whenHeld(() => void (before = reads.length));
  await sendAtOnce(crowd);
  await until(() => reads.length === 40);
  const order = reads.map(({ client }) => client);
  const waited = order.slice(before).toSorted();
  expect(waited.length).toBeGreaterThan(16);
  // Eight resume at first, in any order.
  expect(waited.slice(0, 12)).toEqual(expect.arrayContaining(order.slice(before, before + 8)));
});

it("resumes known light clients before many newcomers", async () => {
  const { open, pass, reads, reading, sockets } = await start();
  const crowd: Socket[] = [];
  for (let i = 0; i < 60; i += 1) crowd.push(...(await open(`newcomer ${i}`)));
  const [known] = await open("known");
  const theirs = sockets()[60];
  if (known === undefined || theirs === undefined) throw new Error("not open");
  for (let i = 0; i < 10; i += 1) reading.charge(theirs);
  await turnsPass(2);
  pass(1);
  // Newcomers have used less: only their connections.
  await sendAtOnce([...crowd, known]);
  await until(() => reads.length === 61);
  expect(reads.findIndex(({ client }) => client === "known")).toBeLessThan(30);
});

it("reads from served clients before many strangers that have used less", async () => {
  const { open, pass, reads, reading, sockets } = await start();
  const crowd: Socket[] = [];
  for (let i = 0; i < 60; i += 1) crowd.push(...(await open(`stranger ${i}`)));
  const [served] = await open("served");
  const theirs = sockets()[60];
  if (served === undefined || theirs === undefined) throw new Error("not open");
  for (const socket of [...sockets(), theirs]) {
    for (let i = 0; i < 1_000; i += 1) reading.charge(socket);
  }
  reading.served(theirs);
  await turnsPass(2);
  pass(1);
  await sendAtOnce([...crowd, served]);
  await until(() => reads.length === 61);
  expect(reads.findIndex(({ client }) => client === "served")).toBeLessThan(30);
});

it("stops a served client that keeps a turn too long, although others have used more before", async () => {
  const { open, pass, reads, reading, sockets } = await start();
  await open("stranger");
  const served = await open("served", 60);
  const [strange, theirs] = sockets();
  if (strange === undefined || theirs === undefined) throw new Error("not open");
  pass(10_000);
  for (let i = 0; i < 10_000; i += 1) reading.charge(strange);
  reading.served(theirs);
  await sendAtOnce(served);
  await until(() => reads.length === 60);
  expect(mostInOneTurn(reads)).toBeLessThan(30);
});

it("starts new connections of served clients although many others start", async () => {
  const { open, reading, sockets } = await start();
  const [kept] = await open("served");
  await open("stranger", 41);
  const [theirs, next, ...strangers] = sockets();
  if (kept === undefined || theirs === undefined || next === undefined) throw new Error("not open");
  reading.served(theirs);
  const begun: string[] = [];
  for (const [i, socket] of strangers.entries()) {
    accept(reading, socket, `stranger ${i}`, () => void begun.push("stranger"));
  }
  accept(reading, next, "served", () => void begun.push("served"));
  expect(begun).toEqual([...Array<string>(4).fill("stranger"), "served"]);
  await until(() => begun.length === 41);
});

it("drops connections that close while they wait", async () => {
  const { open, pass, reading, reads, sockets, whenHeld } = await start();
  const crowd = await open("crowd", 60);
  pass(10_000);
  whenHeld(() => {
    for (const socket of sockets().slice(20)) socket.destroy();
  });
  await sendAtOnce(crowd.slice(0, 40));
  await until(() => reads.length >= 20 && reading.waiting === 0);
  reads.length = 0;
  await sendAtOnce(crowd.slice(0, 20));
  await until(() => reads.length === 20);
});

it("defers new connections of a heavy client, and starts those of others at once", async () => {
  const { open, pass, postponed, reading, reads, sockets, whenHeld } = await start();
  const crowd = await open("crowd", 60);
  await open("new", 2);
  for (const socket of sockets().slice(60)) reading.charge(socket);
  pass(10_000);
  const begun: string[] = [];
  whenHeld(() => {
    const [one, other] = sockets().slice(60);
    if (one === undefined || other === undefined) throw new Error("not open");
    accept(reading, one, "crowd", () => void begun.push("crowd"));
    accept(reading, other, "single", () => void begun.push("single"));
    expect(begun).toEqual(["single"]);
    expect(postponed).toEqual(["read crowd", "accept crowd"]);
  });
  await sendAtOnce(crowd);
  await until(() => begun.length === 2 && reads.length === 60);
});

it("starts few connections in the turn that accepts them, and the others in later turns", async () => {
  const turns = countTurns();
  const { open, reading, sockets } = await start();
  await open("new", 40);
  const begun: number[] = [];
  for (const [index, socket] of sockets().entries()) {
    accept(reading, socket, `client ${index}`, () => void begun.push(turns()));
  }
  const now = turns();
  expect(begun).toEqual([now, now, now, now]);
  await until(() => begun.length === 40);
  const inTurns = Map.groupBy(begun, (turn) => turn);
  expect(Math.max(...[...inTurns.values()].map(({ length }) => length))).toBeLessThan(20);
});

it("counts the usage of a client in other threads while they are busy", async () => {
  let time = 0;
  const memory = usageMemory(3);
  const [own, , other] = [0, 1, 2].map((row) => new SharedUsage({ memory, row }, () => time));
  if (own === undefined || other === undefined) throw new Error("no rows");
  const [crowd, single] = ["crowd", "single"].map((name) => own.bucketOf(name));
  if (crowd === undefined || single === undefined) throw new Error("no buckets");
  const { open, pass, reading, reads, sockets, whenHeld } = await start(own);
  const noise = await open("noise", 120);
  await open("new", 2);
  for (const socket of sockets().slice(120)) reading.charge(socket);
  other.write([[crowd, 1_000]]);
  expect([other.bucketOf("crowd"), other.elsewhere(crowd)]).toEqual([crowd, 0]);
  expect([own.elsewhere(crowd), own.elsewhere(single)]).toEqual([1_000, 0]);
  pass(10_000);
  const begun: string[] = [];
  whenHeld(() => {
    const [one, two] = sockets().slice(120);
    if (one === undefined || two === undefined) throw new Error("not open");
    accept(reading, one, "crowd", () => void begun.push("crowd"));
    accept(reading, two, "single", () => void begun.push("single"));
    expect(begun).toEqual(["single"]);
  });
  await sendAtOnce(noise);
  await until(() => begun.length === 2 && reads.length === 120);
  // The other threads see the usage of this one as well.
  expect(other.elsewhere(own.bucketOf("noise"))).toBeGreaterThan(0);
  time += 1_000;
  expect(own.elsewhere(crowd)).toBe(0);
});

it("decays the usage of a client slowly while the loop is busy", async () => {
  const { open, pass, reading, reads, sockets, whenHeld } = await start();
  const crowd = await open("crowd", 60);
  await open("new");
  for (const socket of sockets().slice(60)) reading.charge(socket);
  pass(10_000);
  let begunAtOnce: boolean | undefined;
  whenHeld(() => {
    const [of, socket] = [sockets()[0], sockets()[60]];
    if (of === undefined || socket === undefined) throw new Error("not open");
    for (let more = 0; more < 10; more += 1) reading.charge(of);
    let begun = false;
    // Three half-lives of calm, but the loop counts as busy for 100 ms after a long turn.
    pass(90);
    accept(reading, socket, "crowd", () => void (begun = true));
    begunAtOnce = begun;
  });
  await sendAtOnce(crowd);
  await until(() => reads.length === 60);
  expect(begunAtOnce).toBe(false);
});

it("counts a login as several requests", async () => {
  const { open, pass, postponed, reading, sockets } = await start();
  await open("login");
  await open("request");
  pass(10_000);
  const [login, request] = sockets();
  if (login === undefined || request === undefined) throw new Error("not open");
  for (let i = 0; i < 24; i += 1) {
    reading.charge(login);
    reading.chargeLogin(login);
    reading.charge(request);
  }
  // The turn is too long now, which the next requests notice.
  pass(30);
  for (let i = 0; i < 16; i += 1) reading.charge(login);
  expect(postponed).toEqual(["read login"]);
});

it("does not read from a stream that was paused meanwhile until it resumes", async () => {
  const { open, pass, reads, reading, sockets, whenHeld } = await start();
  const crowd = await open("crowd", 100);
  pass(10_000);
  const paused = new Promise<void>((resolve) => {
    whenHeld(() => {
      for (const socket of sockets()) socket.pause();
      resolve();
    });
  });
  await sendAtOnce(crowd);
  await paused;
  await until(() => reading.waiting === 0);
  const few = reads.length;
  expect(few).toBeLessThan(50);
  await turnsPass(10);
  // Nothing is read into the buffer of the stream either.
  expect(sockets().reduce((sum, { readableLength }) => sum + readableLength, 0)).toBe(0);
  for (const socket of sockets()) socket.resume();
  await until(() => reads.length === 100);
});

it("stops a connection that Node pauses and resumes within one turn", async () => {
  const { open, pass, reads, reading, sockets } = await start();
  const [sender] = await open("sender");
  const [socket] = sockets();
  if (sender === undefined || socket === undefined) throw new Error("no connection");
  // So does Node's HTTP server, as soon as a body must not be read, and when it was passed on.
  socket.on("pause", () => stopReading(socket)).on("resume", () => startReading(socket));
  socket.prependListener("data", () => {
    socket.pause();
    for (let unit = 0; unit < 20; unit += 1) reading.charge(socket);
    process.nextTick(() => socket.resume());
  });
  pass(10_000);
  sender.write(Buffer.alloc(8 * 1024 * 1024));
  await until(() => reads.length > 128);
  // libuv reads up to 32 times before it goes on.
  expect(mostInOneTurn(reads)).toBeLessThan(10);
});
