import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const MIB = 1024 * 1024;
const MODULE = join(import.meta.dirname, "../../src/app/threads/thread-memory.ts");

/** Returns the heap limit of a thread in a process with `count` threads and the flags of the image. */
async function heapLimit(count: number): Promise<number> {
  const script = `
    const { Worker } = await import("node:worker_threads");
    const { keepThreadsSmall } = await import(${JSON.stringify(MODULE)});
    keepThreadsSmall(${count});
    const told = 'require("node:worker_threads").parentPort.postMessage(require("node:v8").getHeapStatistics().heap_size_limit)';
    new Worker(told, { eval: true, execArgv: [] }).on("message", (limit) => console.log(limit));
  `;
  const flags = ["--max-semi-space-size=8", "--max-old-space-size=128", "--input-type=module"];
  const { stdout } = await promisify(execFile)(process.execPath, [...flags, "--eval", script]);
  return Number(stdout);
}

it("divides the young generation of one thread among all, and leaves each at least a quarter", async () => {
  const limits = await Promise.all([1, 2, 4, 16].map(heapLimit));
  const [alone = 0, ...shared] = limits;
  // V8 reserves three times the semi-space.
  expect(shared.map((limit) => (alone - limit) / MIB)).toEqual([3 * 4, 3 * 6, 3 * 6]);
});
