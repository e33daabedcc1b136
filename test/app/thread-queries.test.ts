import { expect, test } from "vitest";
import { mergeAnswers, posted } from "../../src/app/threads/thread-queries.ts";

const target = (inFlight: number, state: "available" | "ejected") => ({
  ...{ upstream: "app", target: "http://127.0.0.1:1", protocol: "http1", state },
  ...{ weight: 1, inFlight, oldestMs: 1_000 * inFlight, failures: 0 },
});

test("the answers of all threads are merged, and missing ones are skipped", () => {
  const replies = [
    posted("targets", [target(2, "available")]),
    undefined,
    posted("targets", [target(3, "ejected")]),
  ];
  expect(mergeAnswers("targets", replies)).toEqual([{ ...target(5, "ejected"), oldestMs: 3_000 }]);
  expect(mergeAnswers("targets", [undefined])).toEqual([]);
});
