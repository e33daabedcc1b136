import { describe, expect, test } from "vitest";
import { HashingQueue } from "../../src/credentials/hashing/hashing-queue.ts";

/** Jobs are named after their network: `a1` and `a2` both come from `a`. A capital letter marks a known network. */
function queueOf(places: number) {
  const queue = new HashingQueue<string>(places);
  return {
    /** Returns what each job displaced: itself, another job, or nothing. */
    add: (jobs: string, failures = 0): (string | undefined)[] =>
      jobs.split(" ").map((job) => {
        const network = job.slice(0, 1);
        const familiar = network === network.toUpperCase();
        return queue.add(job, { network, known: familiar, failures: familiar ? 0 : failures });
      }),
    order(): string {
      const jobs: string[] = [];
      for (let job = queue.next(); job !== undefined; job = queue.next()) jobs.push(job);
      expect(queue.length).toBe(0);
      return jobs.join(" ");
    },
    length: () => queue.length,
  };
}

const nothing = (count: number): undefined[] => Array.from({ length: count }, () => undefined);

describe("the order of turns", () => {
  test("networks take turns, and the jobs of each run in order of arrival", () => {
    const { add, order } = queueOf(20);
    expect(add("a1 a2 a3 a4 b1 b2 c1")).toEqual(nothing(7));
    expect(order()).toBe("a1 b1 c1 a2 b2 a3 a4");
  });

  test("a later login waits for one job of each other network", () => {
    const queue = new HashingQueue<string>(100);
    const add = (network: string): void => {
      queue.add(network, { network, known: false, failures: 0 });
    };
    for (let index = 0; index < 60; index++) add(`n${index % 5}`);
    add("late");
    const turns = Array.from({ length: 6 }, () => queue.next());
    expect(turns.at(-1)).toBe("late");
  });

  test("known networks get three of four turns while unknown ones wait", () => {
    const { add, order } = queueOf(20);
    add("a1 a2 a3 A1 A2 A3 A4 A5 A6 A7");
    expect(order()).toBe("A1 A2 A3 a1 A4 A5 A6 a2 A7 a3");
  });
});

describe("a full queue", () => {
  test("refuses a login that is not lighter than the others", () => {
    const { add, order } = queueOf(4);
    expect(add("a1 b1 c1 d1")).toEqual(nothing(4));
    expect(add("e1 a2")).toEqual(["e1", "a2"]);
    expect(order()).toBe("a1 b1 c1 d1");
  });

  test("displaces the newest job of the heaviest network for a lighter one", () => {
    const { add, order } = queueOf(4);
    add("a1 b1 b2 b3");
    expect(add("c1")).toEqual(["b3"]);
    expect(add("d1 e1")).toEqual(["b2", "e1"]);
    expect(order()).toBe("a1 b1 c1 d1");
  });

  test("displaces a network with failures for one without", () => {
    const { add, order } = queueOf(3);
    add("a1 b1", 7);
    add("c1", 9);
    expect(add("d1", 9)).toEqual(["d1"]);
    expect(add("e1")).toEqual(["c1"]);
    expect(add("f1", 3)).toEqual(["a1"]);
    expect(order()).toBe("b1 e1 f1");
  });

  test("displaces unknown networks for known ones, but leaves them one place of four", () => {
    const { add, length, order } = queueOf(8);
    add("a1 b1 c1 d1 e1 f1 g1 h1");
    expect(add("A1 B1 C1 D1 E1 F1")).not.toContain(undefined);
    expect(add("G1")).toEqual(["G1"]);
    expect(length()).toBe(8);
    expect(order()).toMatch(/^A1 B1 C1 \w1 D1 E1 F1 \w1$/);
  });

  test("gives unknown networks their share back after known ones have filled it", () => {
    const { add, length } = queueOf(8);
    add("A1 A2 A3 A4 A5 A6 B1 B2");
    expect(add("a1 b1 c1")).toEqual(["A6", "A5", "c1"]);
    expect(add("C1")).toEqual(["A4"]);
    expect(length()).toBe(8);
  });

  test("refuses everybody if it has no places", () => {
    expect(queueOf(0).add("a1 A1")).toEqual(["a1", "A1"]);
  });

  test("gives its only place to a known network, and not back to an unknown one", () => {
    const { add, order } = queueOf(1);
    expect(add("a1 A1 b1 B1")).toEqual([undefined, "a1", "b1", "B1"]);
    expect(order()).toBe("A1");
  });
});
