import { expect, test } from "vitest";
import { type Evidence, judge, MIB } from "../../../soak/exhaustion/verdict.ts";

const seen = {
  answers: 50,
  medianMs: 2,
  p99Ms: 30,
  slowestMs: 40,
  failed: 0,
  failures: [],
  ownMs: 5,
  slowest: { ownMs: 1, connectedMs: 7, afterMs: 620 },
};
const good: Evidence = {
  name: "answers",
  tls: true,
  workers: 1,
  bit: true,
  fills: false,
  ended: undefined,
  memory: { first: 100 * MIB, peak: 256 * MIB, last: 120 * MIB, peakAfterMs: 900 },
  testimony: { kept: seen, fresh: seen, livez: seen, calm: seen },
  counts: { opened: 1, refused: 0, open: 1, finished: 1, sent: 1, received: 0 },
  losses: { overflows: 0, synsAgain: 0, packets: 0 },
};
const DEMANDS = { slowestMs: 1_000, memoryOnly: false };
const refused = { ...seen, answers: 1, failed: 3, failures: ["read ECONNRESET"] };

test("an attack that is held passes", () => {
  expect(judge(good, DEMANDS).faults).toEqual([]);
});

test.each<[what: string, evidence: Evidence, fault: string]>([
  [
    "too much memory",
    { ...good, memory: { ...good.memory, peak: 257 * MIB } },
    "257 MiB of memory, and not 256 MiB",
  ],
  ["an attack that did nothing", { ...good, bit: false }, "the attack did not do its work"],
  ["a process that ended", { ...good, ended: "SIGABRT" }, "the process ended: SIGABRT"],
  [
    "a late answer",
    { ...good, testimony: { ...good.testimony, kept: { ...seen, slowestMs: 1_001 } } },
    "a kept connection: an answer after 1001 ms, connected after 7 ms, asked 620 ms after the first",
  ],
  [
    "answers that failed",
    { ...good, testimony: { ...good.testimony, livez: refused } },
    "/livez: 3 of 4 failed (read ECONNRESET)",
  ],
  [
    "a witness that asked nothing",
    { ...good, testimony: { ...good.testimony, fresh: { ...seen, answers: 0 } } },
    "a new connection: not asked",
  ],
])("%s is a fault", (_what, evidence, fault) => {
  expect(judge(evidence, DEMANDS).faults).toEqual([fault]);
});

test("where memory alone is judged, answers may be late, but not missing altogether", () => {
  const none = { ...refused, answers: 0 };
  const { testimony } = good;
  const late = { ...testimony, kept: { ...seen, slowestMs: 5_000 }, fresh: none };
  expect(judge({ ...good, testimony: late }, { ...DEMANDS, memoryOnly: true }).faults).toEqual([]);
  expect(
    judge({ ...good, testimony: { ...testimony, livez: none } }, { ...DEMANDS, memoryOnly: true })
      .faults,
  ).toEqual(["/livez: no answer at all"]);
});

test("how long an answer may take can be said", () => {
  const late = { ...good.testimony, kept: { ...seen, slowestMs: 1_500 } };
  const evidence = { ...good, testimony: late };
  expect(judge(evidence, { ...DEMANDS, slowestMs: 1_400 }).faults).toHaveLength(1);
  expect(judge(evidence, { ...DEMANDS, slowestMs: 1_600 }).faults).toEqual([]);
});

test("where strangers take all connections, only new ones may fail", () => {
  const filled = { ...good, fills: true };
  const { testimony } = good;
  expect(judge({ ...filled, testimony: { ...testimony, fresh: refused } }, DEMANDS).faults).toEqual(
    [],
  );
  expect(
    judge({ ...filled, testimony: { ...testimony, kept: refused } }, DEMANDS).faults,
  ).toHaveLength(1);
});
