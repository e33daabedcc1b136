import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test, vi } from "vitest";
import { createProofMemory, UsedProofs } from "../../../src/tokens/proofs/proof-memory.ts";
import type { ProofThread } from "../../tokens/proof-thread.ts";

const NOW = 1_800_000_000_000;

test("100,000 proofs are remembered until each has ended, and not longer", () => {
  const used = new UsedProofs(createProofMemory(1, NOW));
  const names = Array.from({ length: 100_000 }, (_, index) => `proof ${index}`);
  const rememberAll = (untilMs: number, nowMs: number): Record<string, number> => {
    const counts = { new: 0, used: 0, full: 0 };
    for (const name of names) counts[used.remember(name, "alice", untilMs, nowMs)] += 1;
    return counts;
  };
  expect(rememberAll(NOW + 60_500, NOW)).toEqual({ new: 100_000, used: 0, full: 0 });
  expect(rememberAll(NOW + 60_500, NOW + 60_499)).toEqual({ new: 0, used: 100_000, full: 0 });
  expect(rememberAll(NOW + 122_000, NOW + 62_000)).toEqual({ new: 100_000, used: 0, full: 0 });
});

/** Few buckets, in which alice and carol have different shares. */
const small = () => ({
  memory: new SharedArrayBuffer(3 * 32 * 64 * 8),
  threads: 1,
  secret: "",
  since: NOW / 1000,
});

test("a full memory accepts nothing more, and forgets nothing", () => {
  const used = new UsedProofs(small());
  const names = Array.from({ length: 10_000 }, (_, index) => `proof ${index}`);
  const found = names.map((name) => used.remember(name, "alice", NOW + 60_000, NOW));
  const [more = ""] = names.filter((_, index) => found[index] === "full");
  const kept = names.filter((_, index) => found[index] === "new");
  expect(kept.length).toBeGreaterThan(64 * 64);
  for (const name of kept) expect(used.remember(name, "alice", NOW + 60_000, NOW)).toBe("used");
  expect(used.remember(more, "alice", NOW + 60_000, NOW)).toBe("full");
  expect(used.remember(more, "alice", NOW + 180_000, NOW + 61_000)).toBe("new");
});

test("a caller who fills the memory leaves others a share of it", () => {
  const used = new UsedProofs(small());
  const found = (caller: string, proofs: number): Record<string, number> => {
    const counts = { new: 0, used: 0, full: 0 };
    for (let i = 0; i < proofs; i += 1) {
      counts[used.remember(`${caller} ${i}`, caller, NOW + 60_000, NOW)] += 1;
    }
    return counts;
  };
  expect(found("alice", 50_000)["full"]).toBeGreaterThan(30_000);
  expect(found("carol", 300)).toEqual({ new: 300, used: 0, full: 0 });
  expect(found("carol", 300)).toEqual({ new: 0, used: 300, full: 0 });
});

test("of threads that get the same proofs at once, one accepts each", async () => {
  const data: ProofThread = { shared: createProofMemory(3, NOW), names: 50_000, nowMs: NOW };
  const file = new URL("../../tokens/proof-thread.ts", import.meta.url);
  const threads = [1, 2, 3].map(() => new Worker(file, { workerData: data }));
  const answers = await Promise.all(threads.map((each) => once(each, "message")));
  await Promise.all(threads.map((each) => each.terminate()));
  const found: string[][] = answers.map(([each]) => each);
  const accepted = Array.from(
    { length: data.names },
    (_, index) => found.filter((each) => each[index] === "new").length,
  );
  expect(Math.max(...accepted)).toBe(1);
  expect(Math.min(...accepted)).toBe(1);
});

test("a proof that another thread puts elsewhere at the same moment is accepted once", () => {
  const shared = { ...small(), threads: 2 };
  const [one, two] = [new UsedProofs(shared), new UsedProofs(shared)];
  const until = NOW + 60_000;
  // What the other thread does between the search of this one and its entry.
  const { compareExchange } = Atomics;
  const interrupted = vi.spyOn(Atomics, "compareExchange").mockImplementationOnce(((
    cells: BigInt64Array,
    cell: number,
    before: bigint,
    entry: bigint,
  ) => {
    // To the other one, an earlier entry has just ended: it takes that cell, the first that is free.
    const put = compareExchange(cells, cell, before, entry);
    const twin = cell % 64 === 0 ? cell + 1 : cell - 1;
    compareExchange(cells, twin, 0n, entry);
    return put;
  }) as typeof compareExchange);
  expect(one.remember("proof", "alice", until, NOW)).toBe("used");
  interrupted.mockRestore();
  expect(two.remember("proof", "alice", until, NOW)).toBe("used");
});
