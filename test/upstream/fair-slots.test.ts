/** Who gets a slot when a backend is full, and who is preempted. Opens no connection. */
import { EventEmitter } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import type { SlotHolder } from "../../src/upstream/pool/slot.ts";
import type { Target } from "../../src/upstream/pool/target.ts";
import { Upstream } from "../../src/upstream/pool/upstreams.ts";
import { UPSTREAM_DEFAULTS } from "../support/upstream-defaults.ts";

/** Longer than a stalled request keeps its slot while others wait, in milliseconds. */
const SLOW_MS = 600;
const PATIENCE_MS = 500;

/** The events at an upstream, in order: `carol 1` got a slot, `carol 2` was refused with a reason. */
function start(connections: number, length: number) {
  let time = 0;
  const upstream = new Upstream(
    {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      targets: ["http://127.0.0.1:9"],
      connections,
      queue: { length, timeout: 60_000 },
      timeouts: { connect: 1, response: 1, idle: 1 },
      websocket: { handshake: 1, idle: 1 },
    },
    { now: () => 0, monotonic: () => time },
  );
  onTestFinished(() => upstream.close());
  const events: string[] = [];
  const slots = new Map<string, { readonly target: Target; readonly holder: SlotHolder }>();

  function got(name: string, holder: SlotHolder, target: Target): void {
    slots.set(name, { target, holder });
    events.push(name);
  }
  function holderOf(name: string): SlotHolder {
    const preempt = (): void => void events.push(`${name} is preempted`);
    const [client = "", user] = (name.split(" ")[0] ?? "").split("@").toReversed();
    return { client, user, preempt };
  }
  function placeOf(name: string) {
    const slot = slots.get(name);
    if (slot === undefined) throw new Error(`${name} has no slot`);
    return slot;
  }
  return {
    upstream,
    /**
     * Requests a slot, and waits if necessary. A name is the client, optionally preceded by a user and an @, and a
     * number.
     */
    come(...names: readonly string[]): void {
      for (const name of names) {
        const holder = holderOf(name);
        const target = upstream.take(holder);
        if (target !== undefined) {
          got(name, holder, target);
          continue;
        }
        const connection = new EventEmitter();
        onTestFinished(() => void connection.emit("close"));
        upstream.wait(holder, connection).then(
          (later) => later === undefined || got(name, holder, later),
          (error: unknown) =>
            events.push(`${name}: ${String(Reflect.get(Object(error), "reason"))}`),
        );
      }
    },
    async leave(name: string): Promise<void> {
      const { target, holder } = placeOf(name);
      slots.delete(name);
      upstream.stalled.remove(holder);
      upstream.release(target, holder);
      await settled();
    },
    waitsForClient(...names: readonly string[]): void {
      for (const name of names) upstream.stalled.add(placeOf(name).holder, time + PATIENCE_MS);
    },
    sends(name: string): void {
      upstream.stalled.remove(placeOf(name).holder);
    },
    pass(milliseconds: number): void {
      time += milliseconds;
    },
    /** The events since the last call. */
    async events(): Promise<readonly string[]> {
      await settled();
      return events.splice(0);
    },
  };
}

/** Lets the promises of granted slots settle. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

it("serves requesters with equally many slots in order of arrival", async () => {
  const { come, leave, events } = start(1, 10);
  come("a 1", "b 1", "c 1", "b 2");
  for (const name of ["a 1", "b 1", "c 1"]) await leave(name);
  expect(await events()).toEqual(["a 1", "b 1", "c 1", "b 2"]);
});

it("grants a slot to the client with the fewest", async () => {
  const { come, leave, events } = start(3, 10);
  come("a 1", "a 2", "b 1", "a 3", "a 4", "b 2", "c 1");
  expect(await events()).toEqual(["a 1", "a 2", "b 1"]);
  await leave("a 1");
  expect(await events()).toEqual(["c 1"]);
  // Each has one slot now, so the oldest request is next.
  await leave("c 1");
  expect(await events()).toEqual(["a 3"]);
  await leave("a 2");
  expect(await events()).toEqual(["a 4"]);
  await leave("a 3");
  expect(await events()).toEqual(["b 2"]);
});

it("forgets the slots of a client that has left", async () => {
  const { come, leave, events } = start(1, 10);
  for (let round = 0; round < 3; round += 1) {
    come("a 1", "a 2", "b 1");
    await leave("a 1");
    await leave("a 2");
    await leave("b 1");
    expect(await events()).toEqual(["a 1", "a 2", "b 1"]);
  }
});

it("displaces the newest request of the greediest client from a full queue", async () => {
  const { come, leave, events } = start(1, 3);
  come("a 1", "a 2", "a 3", "a 4", "b 1");
  expect(await events()).toEqual(["a 1", "a 4: upstream_busy"]);
  for (const name of ["a 1", "a 2", "a 3"]) await leave(name);
  expect(await events()).toEqual(["a 2", "a 3", "b 1"]);
});

it("refuses a newcomer if no client has more than it would have", async () => {
  const { come, events } = start(1, 3);
  come("a 1", "b 1", "c 1", "d 1");
  come("e 1", "b 2");
  expect(await events()).toEqual(["a 1", "e 1: upstream_busy", "b 2: upstream_busy"]);
});

it("counts slots and waiting requests when the queue is full", async () => {
  const { come, events } = start(3, 1);
  come("a 1", "a 2", "a 3", "a 4");
  come("b 1");
  come("a 5", "c 1");
  expect(await events()).toEqual([
    ...["a 1", "a 2", "a 3", "a 4: upstream_busy"],
    ...["a 5: upstream_busy", "c 1: upstream_busy"],
  ]);
});

it("refuses all requests if the queue has length 0", async () => {
  const { come, events } = start(2, 0);
  come("a 1", "a 2", "b 1");
  expect(await events()).toEqual(["a 1", "a 2", "b 1: upstream_busy"]);
});

it("preempts the longest-stalled request of the heaviest client first", async () => {
  const { come, waitsForClient, pass, events } = start(5, 10);
  come("a 1", "b 1", "b 2", "c 1", "c 2");
  waitsForClient("a 1");
  pass(1);
  waitsForClient("b 2");
  pass(1);
  waitsForClient("b 1", "c 1");
  pass(SLOW_MS);
  await events();
  come("d 1");
  expect(await events()).toEqual(["b 2 is preempted"]);
  come("e 1");
  // The preempted request no longer counts, so b has no more than a.
  expect(await events()).toEqual(["c 1 is preempted"]);
  come("f 1");
  expect(await events()).toEqual(["a 1 is preempted"]);
});

it("does not preempt a request that stalled only for a moment, or has resumed", async () => {
  const { come, waitsForClient, sends, pass, events } = start(2, 10);
  come("a 1", "a 2");
  waitsForClient("a 1");
  pass(SLOW_MS);
  waitsForClient("a 2");
  sends("a 1");
  come("b 1");
  expect(await events()).toEqual(["a 1", "a 2"]);
});

it("restarts the time of a request that stalls again", async () => {
  const { come, waitsForClient, pass, events } = start(2, 10);
  come("a 1", "a 2");
  waitsForClient("a 1", "a 2");
  pass(SLOW_MS);
  waitsForClient("a 1");
  come("b 1", "c 1");
  expect(await events()).toEqual(["a 1", "a 2", "a 2 is preempted"]);
});

it("preempts no client that has no more than the requester, however much it requests", async () => {
  const { come, waitsForClient, pass, events } = start(4, 10);
  come("victim 1", "b 1", "a 1", "a 2");
  waitsForClient("victim 1", "b 1");
  pass(SLOW_MS);
  await events();
  come("a 3", "a 4", "a 5");
  expect(await events()).toEqual([]);
  // The second request of a client would have one by then.
  come("c 1", "c 2", "c 3");
  expect(await events()).toEqual(["victim 1 is preempted"]);
});

it("lets a client preempt itself, however few slots it has", async () => {
  const { come, leave, waitsForClient, pass, events } = start(2, 10);
  come("a 1", "b 1");
  waitsForClient("a 1", "b 1");
  pass(SLOW_MS);
  come("b 2");
  expect(await events()).toEqual(["a 1", "b 1", "b 1 is preempted"]);
  await leave("b 1");
  expect(await events()).toEqual(["b 2"]);
});

it("tries again while requests wait, and preempts no more slots than they need", async () => {
  const { come, leave, waitsForClient, pass, events } = start(3, 10);
  come("a 1", "a 2", "a 3");
  waitsForClient("a 1", "a 2", "a 3");
  come("b 1", "c 1");
  expect(await events()).toEqual(["a 1", "a 2", "a 3"]);
  pass(SLOW_MS);
  const asked = ["a 1 is preempted", "a 2 is preempted"];
  await expect.poll(events, { interval: 20, timeout: 5_000 }).toEqual(asked);
  await leave("a 1");
  await leave("a 2");
  expect(await events()).toEqual(["b 1", "c 1"]);
});

it("releases a slot once, whether it was preempted or not", async () => {
  const { upstream, come, leave, waitsForClient, pass, events } = start(2, 10);
  come("a 1", "a 2");
  waitsForClient("a 1");
  pass(SLOW_MS);
  come("b 1");
  await leave("a 1");
  expect(await events()).toEqual(["a 1", "a 2", "a 1 is preempted", "b 1"]);
  // Without b 1, b has no slot and a has one, so b is next.
  come("a 3", "b 2");
  await leave("b 1");
  expect(await events()).toEqual(["b 2"]);
  await leave("b 2");
  expect(await events()).toEqual(["a 3"]);
  await leave("a 2");
  await leave("a 3");
  expect(upstream.load).toEqual({ inFlight: 0, waiting: 0, leftOut: 0, targets: 1 });
});

it("reserves the last slots for clients with few", async () => {
  const { come, leave, events } = start(16, 16);
  come(...Array.from({ length: 16 }, (_, i) => `mallory ${i}`));
  expect(await events()).toHaveLength(14);
  come("carol 1", "dave 1", "carol 2", "erin 1");
  expect(await events()).toEqual(["carol 1", "dave 1"]);
  await leave("mallory 0");
  await leave("mallory 1");
  expect(await events()).toEqual(["erin 1", "carol 2"]);
});

it("makes clients with many slots wait for an unreserved one", async () => {
  const { come, leave, events } = start(16, 16);
  come(...Array.from({ length: 15 }, (_, i) => `mallory ${i}`), "carol 1");
  expect(await events()).toHaveLength(15);
  await leave("carol 1");
  expect(await events()).toEqual([]);
  await leave("mallory 0");
  expect(await events()).toEqual(["mallory 14"]);
});

it("counts many addresses with one user's tokens as one", async () => {
  const { come, events } = start(16, 16);
  come(...Array.from({ length: 16 }, (_, i) => `mallory@address-${i} 1`));
  expect(await events()).toHaveLength(14);
  come("carol@address-17 1");
  expect(await events()).toEqual(["carol@address-17 1"]);
});

it("counts a slot granted from the queue like any other", async () => {
  const { come, leave, events } = start(2, 10);
  come("a 1", "b 1", "c 1", "c 2", "a 2");
  await leave("a 1");
  expect(await events()).toEqual(["a 1", "b 1", "c 1"]);
  // Now c has a slot and a has none, although c 2 is older.
  await leave("b 1");
  expect(await events()).toEqual(["a 2"]);
});

it("preempts no more requests than wait", async () => {
  const { come, waitsForClient, pass, events } = start(4, 1);
  come("a 1", "a 2", "a 3", "a 4");
  waitsForClient("a 1", "a 2", "a 3", "a 4");
  pass(SLOW_MS);
  await events();
  come("b 1");
  expect(await events()).toEqual(["a 1 is preempted"]);
  // The slot of a 1 is for b 1, and no other request waits.
  come("c 1");
  expect(await events()).toEqual(["c 1: upstream_busy"]);
});

it("no longer counts clients that have left when it reserves slots for those with few", async () => {
  const { come, leave, events } = start(16, 16);
  for (let guest = 0; guest < 20; guest += 1) {
    come(`guest-${guest} 1`);
    await leave(`guest-${guest} 1`);
  }
  come(...Array.from({ length: 14 }, (_, i) => `mallory ${i}`), "carol 1");
  await events();
  // The average is 7.5 slots of a client: one of them is few.
  come("carol 2");
  expect(await events()).toEqual(["carol 2"]);
});
