import { MessageChannel } from "node:worker_threads";
import { expect, onTestFinished, test } from "vitest";
import { ConfigError } from "../../src/core/config-problem.ts";
import { GateError } from "../../src/core/request/errors.ts";
import { expose, RpcClient, type RpcLimits } from "../../src/core/thread-rpc.ts";
import { until } from "../support/until.ts";

function connected(limits: Partial<RpcLimits> = {}) {
  const { port1, port2 } = new MessageChannel();
  onTestFinished(() => port1.close());
  const never = Promise.withResolvers<string>();
  const told: string[] = [];
  const api = {
    sum: (a: number, b: number) => a + b,
    later: async (text: string) => `${text} later`,
    map: () => new Map([["one", 1]]),
    hang: () => never.promise,
    tell: (text: string): void => void told.push(text),
    fail(kind: "gate" | "config" | "other" | "nothing"): never {
      if (kind === "gate") {
        throw new GateError("login_throttled", { reason: "throttled", retryAfter: 7 });
      }
      if (kind === "config") throw new ConfigError([{ file: "a.yaml", line: 3, message: "bad" }]);
      throw kind === "other" ? new RangeError("too long") : undefined;
    },
    uncloneable: (): unknown => () => undefined,
  };
  expose(port2, api);
  const all = { timeoutMs: 10_000, maxPending: () => 100, ...limits };
  return { calls: new RpcClient<typeof api>(port1, all), told, never };
}

test("functions receive their arguments, and their results are returned", async () => {
  const { calls } = connected();
  const answers = await Promise.all([
    calls.call("sum", 1, 2),
    calls.call("later", "sooner or"),
    calls.call("map"),
  ]);
  expect(answers).toEqual([3, "sooner or later", new Map([["one", 1]])]);
});

test("Sallyport's errors arrive unchanged, others with name and message", async () => {
  const { calls } = connected();
  const gate: unknown = await calls.call("fail", "gate").catch((error: unknown) => error);
  expect(gate).toBeInstanceOf(GateError);
  expect(gate).toMatchObject({ code: "login_throttled", reason: "throttled", retryAfter: 7 });
  expect(gate).toMatchObject({ message: "Too many login attempts, try again later" });
  const config: unknown = await calls.call("fail", "config").catch((error: unknown) => error);
  expect(config).toBeInstanceOf(ConfigError);
  expect(config).toMatchObject({ problems: [{ file: "a.yaml", line: 3, message: "bad" }] });
  await expect(calls.call("fail", "other")).rejects.toMatchObject({
    name: "RangeError",
    message: "too long",
  });
  await expect(calls.call("fail", "nothing")).rejects.toThrow("unknown error");
  await expect(calls.call("uncloneable")).rejects.toThrow(/could not be cloned/);
});

test("a call that times out rejects, and a late answer is ignored", async () => {
  const { calls, never } = connected({ timeoutMs: 20 });
  await expect(calls.call("hang")).rejects.toMatchObject({ name: "NoReplyError", reason: "late" });
  await expect(calls.callWithTimeout(5, "hang")).rejects.toMatchObject({ reason: "late" });
  never.resolve("at last");
  expect(await calls.callWithTimeout(10_000, "sum", 2, 2)).toBe(4);
});

test("the number of waiting calls is limited", async () => {
  const { calls, never } = connected({ maxPending: () => 2 });
  const waiting = [calls.call("hang"), calls.call("hang")];
  await expect(calls.call("sum", 1, 1)).rejects.toMatchObject({
    name: "NoReplyError",
    reason: "busy",
  });
  never.resolve("done");
  expect(await Promise.all(waiting)).toEqual(["done", "done"]);
  expect(await calls.call("sum", 1, 1)).toBe(2);
});

test("once the other side is gone, waiting and later calls reject", async () => {
  const { calls, told } = connected();
  const waiting = calls.call("hang");
  calls.close();
  await expect(waiting).rejects.toMatchObject({ name: "NoReplyError", reason: "gone" });
  await expect(calls.call("sum", 1, 1)).rejects.toMatchObject({ reason: "gone" });
  calls.notify("tell", "never");
  expect(told).toEqual([]);
});

test("a notification is processed in order, and the caller does not wait", async () => {
  const { calls, told } = connected();
  calls.notify("tell", "first");
  await calls.call("tell", "second");
  expect(told).toEqual(["first", "second"]);
  calls.notify("tell", "third");
  await until(() => told.length === 3);
});
