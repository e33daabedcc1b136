import { expect, test } from "vitest";
import { SingleFlight } from "../../src/lib/async/single-flight.ts";

test("concurrent work for one key is done once, and again afterwards", async () => {
  const flights = new SingleFlight<number>();
  const { promise, resolve } = Promise.withResolvers<number>();
  let begun = 0;
  const work = (): Promise<number> => {
    begun += 1;
    return promise;
  };
  const both = Promise.all([flights.run("a", work), flights.run("a", work)]);
  const other = flights.run("b", async () => 8);
  resolve(7);
  expect(await both).toEqual([7, 7]);
  expect(await other).toBe(8);
  expect(begun).toBe(1);
  await flights.run("a", work);
  expect(begun).toBe(2);
});

test("an error is shared but not cached", async () => {
  const flights = new SingleFlight<number>();
  const fail = (): Promise<number> => Promise.reject(new Error("no"));
  const results = await Promise.allSettled([flights.run("a", fail), flights.run("a", fail)]);
  expect(results.map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  expect(await flights.run("a", async () => 1)).toBe(1);
});
