import { expect, test } from "vitest";
import { mergeTargets } from "../../src/app/threads/merged-states.ts";

const target = (inFlight: number, state: "available" | "ejected") => ({
  ...{ upstream: "app", target: "http://127.0.0.1:1", protocol: "http1", state },
  ...{ weight: 1, inFlight, failures: 0 },
});

test("the targets of all threads are merged, and missing answers are skipped", () => {
  const answers = [[target(2, "available")], undefined, [target(3, "ejected")]];
  expect(mergeTargets(answers)).toEqual([target(5, "ejected")]);
  expect(mergeTargets([undefined])).toEqual([]);
});
