import { expect, test } from "vitest";
import { Leased } from "../../src/lib/async/leased.ts";

function leased() {
  const closed: string[] = [];
  const lease = new Leased("store", async (value) => void closed.push(value));
  return { lease, closed };
}

test("an unused resource is closed once, as soon as it is retired", async () => {
  const { lease, closed } = leased();
  expect(await lease.use(async (value) => value)).toBe("store");
  expect(closed).toEqual([]);
  await Promise.all([lease.retire(), lease.retire()]);
  expect(closed).toEqual(["store"]);
});

test("a resource in use is closed after its last user, even if that one fails", async () => {
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

test("the last holder closes it, and it cannot be held afterwards", () => {
  const { lease, closed } = leased();
  lease.acquire();
  lease.release();
  expect(closed).toEqual([]);
  lease.release();
  expect(closed).toEqual(["store"]);
  expect(() => lease.acquire()).toThrow("this value is closed");
});

test("it can be closed while held, and is still closed only once", async () => {
  const { lease, closed } = leased();
  lease.acquire();
  await lease.close();
  expect(closed).toEqual(["store"]);
  lease.release();
  await lease.retire();
  expect(closed).toEqual(["store"]);
});
