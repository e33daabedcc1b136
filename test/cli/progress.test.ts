import { afterEach, expect, it, vi } from "vitest";
import { Pending, withProgress } from "../../src/cli/terminal/progress.ts";

afterEach(() => void vi.useRealTimers());

it("names what is pending every two seconds, and prints nothing after the end", async () => {
  vi.useFakeTimers();
  const said: string[] = [];
  const pending = new Pending();
  const upstreams = Promise.withResolvers<number>();
  const all = Promise.all([
    pending.add("upstreams", upstreams.promise),
    pending.add("key\u001b sets", new Promise((resolve) => void setTimeout(resolve, 5_000))),
  ]);
  const ended = withProgress(
    { err: (text) => void said.push(text) },
    () => String(pending),
    () => all,
    true,
  );
  await vi.advanceTimersByTimeAsync(1_900);
  expect(said).toEqual([]);
  await vi.advanceTimersByTimeAsync(200);
  upstreams.resolve(1);
  await vi.advanceTimersByTimeAsync(2_000);
  expect(said).toEqual(["2s: upstreams, key? sets\n", "4s: key? sets\n"]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await ended).toEqual([1, undefined]);
  expect(said).toHaveLength(2);
});

it("prints nothing if it is disabled", async () => {
  vi.useFakeTimers();
  const said: string[] = [];
  const work = (): Promise<number> => new Promise((resolve) => void setTimeout(resolve, 9_000, 3));
  const ended = withProgress({ err: (text) => void said.push(text) }, () => "x", work, false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(await ended).toBe(3);
  expect(said).toEqual([]);
});
