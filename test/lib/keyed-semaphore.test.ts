import { expect, test } from "vitest";
import { KeyedSemaphore, QueueFullError } from "../../src/lib/async/keyed-semaphore.ts";
import { until } from "../support/until.ts";

/** Creates tasks that end on demand, and records which have started. */
function works() {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  return {
    begun,
    work: (name: string) => (): Promise<string> => {
      begun.push(name);
      const end = Promise.withResolvers<string>();
      ends.set(name, end);
      return end.promise;
    },
    end: (name: string): void => ends.get(name)?.resolve(name),
    fail: (name: string): void => ends.get(name)?.reject(new Error(name)),
  };
}

const one = (): number => 1;
const KEY = { key: "key", group: "all" };
const OTHER = { key: "other", group: "all" };

test("for one key, a limited number of tasks runs at once; the others follow in order", async () => {
  const turns = new KeyedSemaphore(10);
  const { begun, work, end } = works();
  const all = ["a", "b", "c", "d"].map((name) => turns.run(KEY, () => 2, work(name)));
  expect(begun).toEqual(["a", "b"]);
  end("b");
  await until(() => begun.length === 3);
  expect(begun).toEqual(["a", "b", "c"]);
  end("a");
  await until(() => begun.length === 4);
  end("c");
  end("d");
  expect(await Promise.all(all)).toEqual(["a", "b", "c", "d"]);
});

test("another key does not wait", async () => {
  const turns = new KeyedSemaphore(10);
  const { begun, work, end } = works();
  const all = [turns.run(KEY, one, work("a")), turns.run(OTHER, one, work("b"))];
  expect(begun).toEqual(["a", "b"]);
  end("a");
  end("b");
  await Promise.all(all);
});

test("an error goes to the caller, and the next task runs", async () => {
  const turns = new KeyedSemaphore(10);
  const { begun, work, end, fail } = works();
  const failed = turns.run(KEY, one, work("a"));
  const next = turns.run(KEY, one, work("b"));
  fail("a");
  await expect(failed).rejects.toThrow("a");
  await until(() => begun.includes("b"));
  end("b");
  expect(await next).toBe("b");
});

test("the limit is read again whenever a task ends, and never stops the last one", async () => {
  const turns = new KeyedSemaphore(10);
  const { begun, work, end } = works();
  let limit = 3;
  const all = ["a", "b", "c", "d", "e"].map((name) => turns.run(KEY, () => limit, work(name)));
  expect(begun).toEqual(["a", "b", "c"]);
  limit = 0;
  end("a");
  end("b");
  await Promise.all(all.slice(0, 2));
  expect(begun).toEqual(["a", "b", "c"]);
  end("c");
  await until(() => begun.includes("d"));
  expect(begun).not.toContain("e");
  end("d");
  await until(() => begun.includes("e"));
  end("e");
  await Promise.all(all);
});

test("the number of waiting tasks is limited over all keys, and drops again", async () => {
  const turns = new KeyedSemaphore(2);
  const { work, end, begun } = works();
  const waiting = [
    turns.run(KEY, one, work("a")),
    turns.run(OTHER, one, work("b")),
    turns.run(KEY, one, work("c")),
    turns.run(OTHER, one, work("d")),
  ];
  await expect(turns.run(KEY, one, work("e"))).rejects.toThrow(QueueFullError);
  end("a");
  await until(() => begun.includes("c"));
  const last = turns.run(KEY, one, work("f"));
  for (const name of ["b", "c"]) end(name);
  await until(() => begun.includes("d") && begun.includes("f"));
  for (const name of ["d", "f"]) end(name);
  expect(await Promise.all([...waiting, last])).toEqual(["a", "b", "c", "d", "f"]);
  expect(begun).not.toContain("e");
});

test("tasks that wait in one group take no places of another group", async () => {
  const turns = new KeyedSemaphore(1);
  const { work, end, begun } = works();
  const all = [turns.run(KEY, one, work("a")), turns.run(KEY, one, work("b"))];
  await expect(turns.run(KEY, one, work("c"))).rejects.toThrow(QueueFullError);
  all.push(turns.run({ key: "key", group: "others" }, one, work("d")));
  for (const name of ["a", "b", "d"]) {
    await until(() => begun.includes(name));
    end(name);
  }
  expect(await Promise.all(all)).toEqual(["a", "b", "d"]);
});
