/** One client in fair reading. Nothing is sent on the sockets. */
import { Socket } from "node:net";
import { expect, it } from "vitest";
import {
  ReadingClient,
  ReadingClients,
  SharedUsage,
  usageMemory,
} from "../../src/server/listener/reading/reading-client.ts";

function oneThread(now = () => 0) {
  const memory = usageMemory(1);
  // A fixed salt, so that the clients below never share a bucket.
  new Float64Array(memory).fill(1, -1);
  const shared = new SharedUsage({ memory, row: 0 }, now);
  const clients = new ReadingClients(shared);
  return { shared, clients };
}

it("resumes open connections before new ones, each of them once", () => {
  const client = new ReadingClient();
  const resumed: string[] = [];
  const wait = (line: Map<Socket, () => void>, name: string): void => {
    line.set(new Socket(), () => void resumed.push(name));
  };
  wait(client.accepted, "new 1");
  wait(client.paused, "open 1");
  wait(client.accepted, "new 2");
  wait(client.paused, "open 2");
  expect(client.waiting).toBe(4);
  for (let i = 0; i < 5; i += 1) client.resumeNext();
  expect(resumed).toEqual(["open 1", "open 2", "new 1", "new 2"]);
  expect(client.waiting).toBe(0);
});

it("starts a new connection after eight open ones, although those keep waiting", () => {
  const client = new ReadingClient();
  let resumed = 0;
  const waitAgain = (): void => {
    resumed += 1;
    client.paused.set(new Socket(), waitAgain);
  };
  for (let i = 0; i < 32; i += 1) client.paused.set(new Socket(), waitAgain);
  const begun: number[] = [];
  for (let i = 0; i < 3; i += 1) client.accepted.set(new Socket(), () => void begun.push(resumed));
  for (let i = 0; i < 40; i += 1) client.resumeNext();
  expect(begun).toEqual([8, 16, 24]);
});

it("halves the usage every 32 ms, however often it is read", () => {
  const client = new ReadingClient();
  client.charge(100, 0);
  for (const time of [1, 7, 15, 31]) client.used(time);
  expect(client.used(32)).toBeCloseTo(50);
  expect(client.used(96)).toBeCloseTo(12.5);
});

it("calls clients heavy from half of the usage-weighted mean, but never with little usage", () => {
  const { clients } = oneThread();
  for (const name of ["a", "b"]) clients.of(name).charge(100, 0);
  clients.of("c").charge(2, 0);
  expect(clients.heavyFrom(0).others).toBeGreaterThan(40);
  expect(clients.heavyFrom(0).others).toBeLessThan(51);
  expect(clients.heavyFrom(320).others).toBe(16);
});

it("calls served clients heavy if they use much of the time, and compares them among themselves", () => {
  const { shared, clients } = oneThread();
  const served = clients.of("served");
  shared.served(served.bucket);
  for (let i = 0; i < 8; i += 1) clients.of(`stranger ${i}`).charge(100, 0);
  served.charge(200, 0);
  const isHeavy = (name: string) => clients.isHeavy(clients.of(name), 0, clients.heavyFrom(0));
  expect([isHeavy("served"), isHeavy("stranger 0")]).toEqual([false, true]);
  const flooder = clients.of("served, too");
  shared.served(flooder.bucket);
  flooder.charge(2_000, 0);
  expect([isHeavy("served"), isHeavy("served, too")]).toEqual([false, true]);
});

it("counts a client as served for ten minutes", () => {
  let now = 0;
  const { shared } = oneThread(() => now);
  const [one, other] = ["a", "b"].map((name) => shared.bucketOf(name)) as [number, number];
  expect(shared.wasServed(one)).toBe(false);
  shared.served(one);
  now = 600_000;
  expect([shared.wasServed(one), shared.wasServed(other)]).toEqual([true, false]);
  now += 1;
  expect(shared.wasServed(one)).toBe(false);
});

it("remembers only heavy clients that have closed their connections", () => {
  const { clients } = oneThread();
  clients.of("heavy").charge(100, 0);
  clients.of("light").charge(2, 0);
  for (const name of ["heavy", "light"]) clients.forget(name, 0);
  expect([...clients.keys()]).toEqual(["heavy"]);
});
