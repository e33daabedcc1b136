import { expect, test } from "vitest";
import { Leased } from "../../src/lib/async/leased.ts";

function leased() {
  const closed: string[] = [];
  const lease = new Leased("store", async (value) => void closed.push(value));
  return { lease, closed };
}

test("what nobody uses is closed as soon as it is retired, and once", async () => {
  const { lease, closed } = leased();
  expect(await lease.use(async (value) => value)).toBe("store");
  expect(closed).toEqual([]);
  await Promise.all([lease.retire(), lease.retire()]);
  expect(closed).toEqual(["store"]);
});

test("what is used is closed after its last user, also one that fails", async () => {
  const { lease, closed } = leased();
  const [first, last] = [Promise.withResolvers<string>(), Promise.withResolvers<string>()];
  const uses = [first, last].map(({ promise }) => lease.use(() => promise));
  const retired = lease.retire();
  first.resolve("done");
  expect(await uses[0]).toBe("done");
  expect(closed).toEqual([]);
  last.reject(new Error("failed"));
  await expect(uses[1]).rejects.toThrow("failed");
  await retired;
  expect(closed).toEqual(["store"]);
});

test("the last holder closes it, and nobody can hold it after that", () => {
  const { lease, closed } = leased();
  lease.acquire();
  lease.release();
  expect(closed).toEqual([]);
  lease.release();
  expect(closed).toEqual(["store"]);
  expect(() => lease.acquire()).toThrow("this value is closed");
});

test("it can be closed whoever holds it, and is closed once all the same", async () => {
  const { lease, closed } = leased();
  lease.acquire();
  await lease.close();
  expect(closed).toEqual(["store"]);
  lease.release();
  await lease.retire();
  expect(closed).toEqual(["store"]);
});
