/** One client in the sharing of the event loop. Nothing is sent on the sockets. */
import { Socket } from "node:net";
import { expect, it } from "vitest";
import { ReadingClient } from "../../src/server/listener/reading/reading-client.ts";
import { ReadingClients } from "../../src/server/listener/reading/reading-clients.ts";

it("resumes connections that were open before new ones, and each once", () => {
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

it("counts what was used for half after 32 ms, whenever it is asked", () => {
  const client = new ReadingClient();
  client.charge(100, 0);
  for (const time of [1, 7, 15, 31]) client.used(time);
  expect(client.used(32)).toBeCloseTo(50);
  expect(client.used(96)).toBeCloseTo(12.5);
});

it("calls clients heavy from half of the usage-weighted mean, and nobody who used little", () => {
  const clients = new ReadingClients();
  for (const name of ["a", "b"]) clients.of(name).charge(100, 0);
  clients.of("c").charge(2, 0);
  expect(clients.heavyFrom(0)).toBeGreaterThan(40);
  expect(clients.heavyFrom(0)).toBeLessThan(51);
  expect(clients.heavyFrom(320)).toBe(16);
});

it("remembers a heavy client that has closed its connections, and no light one", () => {
  const clients = new ReadingClients();
  clients.of("heavy").charge(100, 0);
  clients.of("light").charge(2, 0);
  for (const name of ["heavy", "light"]) clients.forget(name, 0);
  expect([...clients].map(([name]) => name)).toEqual(["heavy"]);
});
