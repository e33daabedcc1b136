import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { expect, it } from "vitest";
import { ChunkCoalescer } from "../../src/lib/http/chunk-coalescer.ts";

function start() {
  const passed: Buffer[] = [];
  const chunks = new ChunkCoalescer({ takeBlock: (block) => void passed.push(block) });
  return { passed, chunks };
}

it("merges one-byte chunks that arrive in the same turn", async () => {
  const { passed, chunks } = start();
  for (let i = 0; i < 10_000; i += 1) chunks.add(Buffer.from("x"));
  await turn();
  expect(passed.map(String)).toEqual(["x".repeat(10_000)]);
});

it("uses several blocks for data that does not fit into one", async () => {
  const { passed, chunks } = start();
  const sent = Array.from({ length: 40 }, (_, i) => String(i % 10).repeat(1_000));
  for (const text of sent) chunks.add(Buffer.from(text));
  await turn();
  expect(passed.map(({ length }) => length)).toEqual([16_000, 16_000, 8_000]);
  expect(passed.map(String).join("")).toBe(sent.join(""));
});

it("passes on the data of each turn in that turn", async () => {
  const { passed, chunks } = start();
  for (const text of ["one", "two"]) {
    chunks.add(Buffer.from(text));
    await turn();
  }
  expect(passed.map(String)).toEqual(["one", "two"]);
});

it("passes on a single chunk unchanged", async () => {
  const { passed, chunks } = start();
  const alone = Buffer.from("alone");
  chunks.add(alone);
  await turn();
  expect(passed[0]).toBe(alone);
});

it("preserves all bytes in order, for chunks of any length in any turn", async () => {
  const steps = fc.array(fc.oneof(fc.integer({ min: 1, max: 3_000 }), fc.constant("turn")), {
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(steps, async (each) => {
      const { passed, chunks } = start();
      const sent: Buffer[] = [];
      for (const step of each) {
        if (typeof step === "number") {
          const chunk = Buffer.alloc(step, String(sent.length));
          sent.push(chunk);
          chunks.add(Buffer.from(chunk));
        } else await turn();
      }
      chunks.flush();
      expect(Buffer.concat(passed).equals(Buffer.concat(sent))).toBe(true);
    }),
  );
});
