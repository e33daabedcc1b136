import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { expect, test } from "vitest";
import { createProofMemory, UsedProofs } from "../../src/tokens/proofs/proof-memory.ts";
import type { ProofThread } from "./proof-thread.ts";

const NOW = 1_800_000_000_000;

test("100,000 proofs are remembered until each has ended, and not longer", () => {
  const used = new UsedProofs(createProofMemory(1, NOW));
  const names = Array.from({ length: 100_000 }, (_, index) => `proof ${index}`);
  const rememberAll = (untilMs: number, nowMs: number): Record<string, number> => {
    const counts = { new: 0, used: 0, full: 0 };
    for (const name of names) counts[used.remember(name, untilMs, nowMs)] += 1;
    return counts;
  };
  expect(rememberAll(NOW + 60_500, NOW)).toEqual({ new: 100_000, used: 0, full: 0 });
  expect(rememberAll(NOW + 60_500, NOW + 60_499)).toEqual({ new: 0, used: 100_000, full: 0 });
  expect(rememberAll(NOW + 122_000, NOW + 62_000)).toEqual({ new: 100_000, used: 0, full: 0 });
});

test("a full memory accepts nothing more, and forgets nothing", () => {
  const { secret, since } = createProofMemory(1, NOW);
  // One bucket.
  const used = new UsedProofs({ memory: new SharedArrayBuffer(64 * 8), secret, since });
  const names = Array.from({ length: 64 }, (_, index) => `proof ${index}`);
  for (const name of names) expect(used.remember(name, NOW + 60_000, NOW)).toBe("new");
  expect(used.remember("one more", NOW + 60_000, NOW)).toBe("full");
  for (const name of names) expect(used.remember(name, NOW + 60_000, NOW)).toBe("used");
  expect(used.remember("one more", NOW + 180_000, NOW + 61_000)).toBe("new");
});

test("of threads that get the same proofs at once, one accepts each", async () => {
  const data: ProofThread = { shared: createProofMemory(1, NOW), names: 50_000, nowMs: NOW };
  const file = new URL("./proof-thread.ts", import.meta.url);
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
