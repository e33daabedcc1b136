import { expect, test } from "vitest";
import { createLog } from "../../src/observe/log/application-log.ts";
import type { Log } from "../../src/core/log.ts";
import { keptLines } from "./kept-lines.ts";

const clock = { now: () => Date.UTC(2026, 10, 3, 12), monotonic: () => 0 };

function logAt(level: keyof Log) {
  const { sink, lines } = keptLines();
  const read = () => lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  return { log: createLog({ sink, level, clock }), lines, read };
}

test("a line has a time, a level, a message and its fields", () => {
  const { log, read } = logAt("info");
  log.info("listening", { address: "0.0.0.0:8443", workers: 2 });
  expect(read()).toEqual([
    {
      time: "2026-11-03T12:00:00.000Z",
      level: "info",
      msg: "listening",
      address: "0.0.0.0:8443",
      workers: 2,
    },
  ]);
});

test("lines below the level are omitted", () => {
  const { log, read } = logAt("warn");
  log.debug("a");
  log.info("b");
  log.warn("c");
  log.error("d");
  expect(read().map(({ level, msg }) => [level, msg])).toEqual([
    ["warn", "c"],
    ["error", "d"],
  ]);
});

test("secrets are masked in fields and in the message", () => {
  const { log, lines } = logAt("info");
  log.info("got Bearer abc.def.ghi", { password: "hunter2", nested: { apiKey: "k-123" } });
  expect(lines[0]).not.toMatch(/abc\.def|hunter2|k-123/);
});

test("an error is logged as message, code and cause, with its stack only at debug", () => {
  const cause = Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" });
  const error = new Error("no keys", { cause });
  const plain = logAt("info");
  plain.log.error("failed", { error });
  expect(plain.read()[0]?.["error"]).toEqual({
    message: "no keys",
    cause: { message: "connect ECONNREFUSED", code: "ECONNREFUSED" },
  });
  const verbose = logAt("debug");
  verbose.log.error("failed", { error });
  expect(verbose.read()[0]?.["error"]).toMatchObject({ stack: expect.stringContaining("no keys") });
});

test("a field cannot replace the time, the level or the message", () => {
  const { log, read } = logAt("info");
  log.info("real", { level: "error", msg: "forged", time: "never" });
  expect(read()[0]).toMatchObject({ level: "info", msg: "real", level_: "error", msg_: "forged" });
});

test("no field can break the line or throw", () => {
  const { log, lines, read } = logAt("info");
  const circular: Record<string, unknown> = { deep: 1n, when: new Date(Number.NaN) };
  circular["self"] = circular;
  log.info("odd\n\u009b\u2028", {
    circular,
    none: undefined,
    call: () => 1,
    bytes: Buffer.from("x"),
  });
  log.info("worse", {
    get field(): never {
      throw new Error("no");
    },
  });
  // oxlint-disable-next-line no-control-regex -- the point of the test
  for (const line of lines) expect(line).not.toMatch(/[\u0000-\u001f\u007f-\u009f\u2028]/);
  expect(read().map(({ msg }) => msg)).toEqual(["odd\n\u009b\u2028", "worse"]);
  expect(read()[0]).toMatchObject({ bytes: "[1 bytes]", circular: { deep: "1" } });
});
