/** Whose turn it is when the places at a backend are taken, and who has to make room. No connection is opened here. */
import { EventEmitter } from "node:events";
import { expect, it, onTestFinished } from "vitest";
import type { Holder } from "../../src/upstream/slow-holders.ts";
import type { Target } from "../../src/upstream/target.ts";
import { Upstream } from "../../src/upstream/upstreams.ts";

/** Longer than anybody may wait for its client while others wait for a place, in milliseconds. */
const SLOW_MS = 600;

/** What happens at an upstream, in order: `carol 1` got a place, `carol 2` was refused with a reason. */
function start(connections: number, length: number) {
  let time = 0;
  const upstream = new Upstream(
    {
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
  const places = new Map<string, { readonly target: Target; readonly holder: Holder }>();

  function got(name: string, holder: Holder, target: Target): void {
    places.set(name, { target, holder });
    events.push(name);
  }
  function holderOf(name: string): Holder {
    const giveWay = (): void => void events.push(`${name} gives way`);
    return { client: name.split(" ")[0] ?? "", giveWay };
  }
  function placeOf(name: string) {
    const place = places.get(name);
    if (place === undefined) throw new Error(`${name} has no place`);
    return place;
  }
  return {
    upstream,
    /** Comes, and waits when it must; a name is that of the client and a number. */
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
      places.delete(name);
      upstream.flows(holder);
      upstream.release(target, holder);
      await settled();
    },
    waitsForClient(...names: readonly string[]): void {
      for (const name of names) upstream.held(placeOf(name).holder, time);
    },
    sends(name: string): void {
      upstream.flows(placeOf(name).holder);
    },
    pass(milliseconds: number): void {
      time += milliseconds;
    },
    /** What has happened since this was asked last. */
    async events(): Promise<readonly string[]> {
      await settled();
      return events.splice(0);
    },
  };
}

/** Whoever was given a place knows it by then. */
const settled = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve));

it("serves in the order in which they came, where all have as many places", async () => {
  const { come, leave, events } = start(1, 10);
  come("a 1", "b 1", "c 1", "b 2");
  for (const name of ["a 1", "b 1", "c 1"]) await leave(name);
  expect(await events()).toEqual(["a 1", "b 1", "c 1", "b 2"]);
});

it("gives a place to the client that has the fewest", async () => {
  const { come, leave, events } = start(3, 10);
  come("a 1", "a 2", "b 1", "a 3", "a 4", "b 2", "c 1");
  expect(await events()).toEqual(["a 1", "a 2", "b 1"]);
  await leave("a 1");
  expect(await events()).toEqual(["c 1"]);
  // Now one each has a place: who came first.
  await leave("c 1");
  expect(await events()).toEqual(["a 3"]);
  await leave("a 2");
  expect(await events()).toEqual(["a 4"]);
  await leave("a 3");
  expect(await events()).toEqual(["b 2"]);
});

it("forgets what a client had when it has left", async () => {
  const { come, leave, events } = start(1, 10);
  for (let round = 0; round < 3; round += 1) {
    come("a 1", "a 2", "b 1");
    await leave("a 1");
    await leave("a 2");
    await leave("b 1");
    expect(await events()).toEqual(["a 1", "a 2", "b 1"]);
  }
});

it("makes the last of the greediest client leave a full line for a newcomer", async () => {
  const { come, leave, events } = start(1, 3);
  come("a 1", "a 2", "a 3", "a 4", "b 1");
  expect(await events()).toEqual(["a 1", "a 4: upstream_busy"]);
  for (const name of ["a 1", "a 2", "a 3"]) await leave(name);
  expect(await events()).toEqual(["a 2", "a 3", "b 1"]);
});

it("refuses the newcomer where nobody has more than it would have", async () => {
  const { come, events } = start(1, 3);
  come("a 1", "b 1", "c 1", "d 1");
  come("e 1", "b 2");
  expect(await events()).toEqual(["a 1", "e 1: upstream_busy", "b 2: upstream_busy"]);
});

it("counts the places as well as the waiting, for whom a full line has room", async () => {
  const { come, events } = start(3, 1);
  come("a 1", "a 2", "a 3", "a 4");
  come("b 1");
  come("a 5", "c 1");
  expect(await events()).toEqual([
    ...["a 1", "a 2", "a 3", "a 4: upstream_busy"],
    ...["a 5: upstream_busy", "c 1: upstream_busy"],
  ]);
});

it("refuses everybody where none may wait", async () => {
  const { come, events } = start(2, 0);
  come("a 1", "a 2", "b 1");
  expect(await events()).toEqual(["a 1", "a 2", "b 1: upstream_busy"]);
});

it("asks the slow of the heaviest client first, of these who waits longest", async () => {
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
  expect(await events()).toEqual(["b 2 gives way"]);
  come("e 1");
  // Without the one that has been asked, b has no more than a.
  expect(await events()).toEqual(["c 1 gives way"]);
  come("f 1");
  expect(await events()).toEqual(["a 1 gives way"]);
});

it("asks nobody who has waited for its client only for a moment, or does not any more", async () => {
  const { come, waitsForClient, sends, pass, events } = start(2, 10);
  come("a 1", "a 2");
  waitsForClient("a 1");
  pass(SLOW_MS);
  waitsForClient("a 2");
  sends("a 1");
  come("b 1");
  expect(await events()).toEqual(["a 1", "a 2"]);
});

it("begins anew with who is told of again", async () => {
  const { come, waitsForClient, pass, events } = start(2, 10);
  come("a 1", "a 2");
  waitsForClient("a 1", "a 2");
  pass(SLOW_MS);
  waitsForClient("a 1");
  come("b 1", "c 1");
  expect(await events()).toEqual(["a 1", "a 2", "a 2 gives way"]);
});

it("takes nothing from who has no more than the one that asks, however many it asks for", async () => {
  const { come, waitsForClient, pass, events } = start(4, 10);
  come("victim 1", "b 1", "a 1", "a 2");
  waitsForClient("victim 1", "b 1");
  pass(SLOW_MS);
  await events();
  come("a 3", "a 4", "a 5");
  expect(await events()).toEqual([]);
  // The second of a client would have one by then.
  come("c 1", "c 2", "c 3");
  expect(await events()).toEqual(["victim 1 gives way"]);
});

it("takes from a client for its own requests, whatever it has", async () => {
  const { come, leave, waitsForClient, pass, events } = start(2, 10);
  come("a 1", "b 1");
  waitsForClient("a 1", "b 1");
  pass(SLOW_MS);
  come("b 2");
  expect(await events()).toEqual(["a 1", "b 1", "b 1 gives way"]);
  await leave("b 1");
  expect(await events()).toEqual(["b 2"]);
});

it("looks again while somebody waits, and asks for no more places than are waited for", async () => {
  const { come, leave, waitsForClient, pass, events } = start(3, 10);
  come("a 1", "a 2", "a 3");
  waitsForClient("a 1", "a 2", "a 3");
  come("b 1", "c 1");
  expect(await events()).toEqual(["a 1", "a 2", "a 3"]);
  pass(SLOW_MS);
  const asked = ["a 1 gives way", "a 2 gives way"];
  await expect.poll(events, { interval: 20, timeout: 5_000 }).toEqual(asked);
  await leave("a 1");
  await leave("a 2");
  expect(await events()).toEqual(["b 1", "c 1"]);
});

it("counts a place off once, whether its holder was asked or not", async () => {
  const { upstream, come, leave, waitsForClient, pass, events } = start(2, 10);
  come("a 1", "a 2");
  waitsForClient("a 1");
  pass(SLOW_MS);
  come("b 1");
  await leave("a 1");
  expect(await events()).toEqual(["a 1", "a 2", "a 1 gives way", "b 1"]);
  // a and b have one each: the turn is a's, who came first.
  come("a 3", "b 2");
  await leave("b 1");
  expect(await events()).toEqual(["b 2"]);
  await leave("b 2");
  expect(await events()).toEqual(["a 3"]);
  await leave("a 2");
  await leave("a 3");
  expect(upstream.load).toEqual({ inFlight: 0, waiting: 0 });
});
