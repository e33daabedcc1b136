/** Every balancer chooses only targets that are in use and have room, and spreads requests as it promises. */
import { describe, expect, onTestFinished, test } from "vitest";
import { type Balance, BALANCES } from "../../src/upstream/pool/balancers.ts";
import type { Requester } from "../../src/upstream/pool/in-flight-counts.ts";
import type { Target } from "../../src/upstream/pool/target.ts";
import { Upstream, type UpstreamOptions } from "../../src/upstream/pool/upstreams.ts";
import { UPSTREAM_DEFAULTS } from "../support/upstream-defaults.ts";

interface Promised {
  /** Whether equal targets share the requests of one client, or those of many clients. */
  readonly shares: "requests" | "clients" | "nothing";
  /** Whether targets get requests in proportion to their weights, which are smaller while they start slowly. */
  readonly weighs: boolean;
  /** Whether a target with more requests than the others gets none. */
  readonly sparesBusy: boolean;
}

const PROMISED: Record<Balance, Promised> = {
  roundRobin: { shares: "requests", weighs: true, sparesBusy: false },
  leastRequests: { shares: "requests", weighs: true, sparesBusy: true },
  random2: { shares: "requests", weighs: true, sparesBusy: true },
  clientHash: { shares: "clients", weighs: true, sparesBusy: false },
  first: { shares: "nothing", weighs: false, sparesBusy: false },
};

const URLS = ["http://127.0.0.1:9", "http://127.0.0.2:9", "http://127.0.0.3:9"] as const;

function open(options: Partial<UpstreamOptions>) {
  let time = 0;
  const upstream = new Upstream(
    {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      targets: URLS,
      connections: 1_000,
      queue: { length: 0, timeout: 1 },
      ejection: { failures: 1, for: 60_000, most: 1 },
      timeouts: { connect: 1, response: 1, idle: 1 },
      websocket: { handshake: 1, idle: 1 },
      ...options,
    },
    { now: () => 0, monotonic: () => time },
  );
  onTestFinished(() => upstream.close());
  const requester = (client: string): Requester => ({ client, user: undefined });
  const take = (client = "one", avoid?: Target) => upstream.take(requester(client), avoid);
  return {
    take,
    release: (target: Target, client = "one") => upstream.release(target, requester(client)),
    /** Takes slots without releasing them, and counts them by target. */
    taken(count: number, client: (n: number) => string): number[] {
      const counts = new Map<string, number>(URLS.map((url) => [url, 0]));
      for (let n = 0; n < count; n += 1) {
        const address = take(client(n))?.address ?? "none";
        counts.set(address, (counts.get(address) ?? 0) + 1);
      }
      return [...counts.values()];
    },
    /** Takes and releases a slot that often, each time for another client. @returns the addresses that were chosen. */
    chosen(count: number): string[] {
      const chosen = new Set<string>();
      for (let n = 0; n < count; n += 1) {
        const target = take(`client ${n}`);
        if (target === undefined) return ["none"];
        chosen.add(target.address);
        upstream.release(target, requester(`client ${n}`));
      }
      return [...chosen].toSorted();
    },
    /** Returns the three targets, in the order of the configuration. */
    targets(): readonly [Target, Target, Target] {
      const held: Target[] = [];
      for (let next = take(); next !== undefined; next = take()) held.push(next);
      for (const target of held) upstream.release(target, requester("one"));
      const [one, two, three] = URLS.map((url) => held.find(({ address }) => address === url));
      if (one === undefined || two === undefined || three === undefined) throw new Error("missing");
      return [one, two, three];
    },
    eject: (target: Target) => upstream.states?.failed(target, "connect_refused", 0),
    check: (target: Target, healthy: boolean) => upstream.states?.checked(target, healthy, "test"),
    wait: (ms: number) => void (time += ms),
  };
}

const many = (n: number): string => `client ${n}`;

test("every balancer of the table is tested", () => {
  expect(Object.keys(PROMISED)).toEqual(BALANCES);
});

describe.each(BALANCES)("%s", (balance) => {
  const { shares, weighs, sparesBusy } = PROMISED[balance];

  test("uses every slot of every target, and again those that are released", () => {
    const { take, release, taken } = open({ balance, connections: 4 });
    const [last] = [take()];
    expect(taken(11, () => "one").reduce((sum, count) => sum + count)).toBe(11);
    expect(take()).toBeUndefined();
    expect(take("another")).toBeUndefined();
    if (last === undefined) throw new Error("there was no room");
    for (let turn = 0; turn < 3; turn += 1) {
      release(last);
      expect(take("another")).toBe(last);
    }
  });

  test("never chooses a target that is ejected", () => {
    const { chosen, targets, eject } = open({ balance });
    const [one, two] = targets();
    eject(one);
    expect(chosen(200)).not.toContain(URLS[0]);
    eject(two);
    expect(chosen(200)).toEqual([URLS[2]]);
  });

  test("never chooses a target that is unhealthy, unless all are", () => {
    const { chosen, targets, check } = open({ balance });
    const [one, two, three] = targets();
    check(one, false);
    check(three, false);
    expect(chosen(200)).toEqual([URLS[1]]);
    check(two, false);
    expect(chosen(200)).toEqual(shares === "nothing" ? [URLS[0]] : URLS);
    check(one, true);
    expect(chosen(200)).toEqual([URLS[0]]);
  });

  test("chooses another target than the one that has failed the request, if another has room", () => {
    const { take, release, taken, targets } = open({ balance, connections: 4 });
    const [one] = targets();
    const avoiding: (Target | undefined)[] = [];
    for (let n = 0; n < 8; n += 1) avoiding.push(take("one", one));
    expect(avoiding).not.toContain(one);
    expect(avoiding).not.toContain(undefined);
    expect(take("one", one)).toBe(one);
    expect(taken(3, () => "one")).toEqual([3, 0, 0]);
    release(one);
    expect(take("one", one)).toBe(one);
  });

  test(`shares ${shares} among equal targets`, () => {
    const ofOne = open({ balance }).taken(600, () => "one");
    const ofMany = open({ balance }).taken(600, many);
    const used = (counts: readonly number[]) => counts.filter((count) => count > 0).length;
    expect(used(ofOne)).toBe(shares === "requests" ? 3 : 1);
    expect(used(ofMany)).toBe(shares === "nothing" ? 1 : 3);
    for (const counts of [ofOne, ofMany].filter((each) => used(each) === 3)) {
      for (const count of counts) expect(count).toBeGreaterThan(150);
    }
  });

  test.runIf(weighs)("gives targets requests in proportion to their weights", () => {
    const [one = 0, two = 0, three = 0] = open({ balance, weights: [3, 1, 2] }).taken(600, many);
    expect(one + two + three).toBe(600);
    expect(Math.abs(one - 300)).toBeLessThan(50);
    expect(Math.abs(two - 100)).toBeLessThan(50);
  });

  test.runIf(weighs)("gives a target that is used again its share step by step", () => {
    const share = (waitMs: number): number => {
      const { taken, targets, check, wait } = open({ balance, slowStart: 10_000 });
      const [one] = targets();
      check(one, false);
      check(one, true);
      wait(waitMs);
      return (taken(600, many)[0] ?? 0) / 600;
    };
    const shared = [share(0), share(3_000), share(10_000)];
    expect(shared).toEqual(shared.toSorted((a, b) => a - b));
    expect(shared[0]).toBeGreaterThan(0);
    expect(shared[0]).toBeLessThan(0.1);
    expect(shared[2]).toBeGreaterThan(0.25);
  });

  test.runIf(sparesBusy)("chooses none that has more requests than the others", () => {
    const { take, taken, targets } = open({ balance });
    const [one] = targets();
    one.inFlight += 100;
    expect(taken(100, many)[0]).toBe(0);
    expect(take()).not.toBe(one);
  });
});
