/** A soak of a few seconds: all events of the long one happen, and pass. */
import { expect, test } from "vitest";
import { FAULTS } from "../../../soak/faults/faults.ts";
import { hasPassed, renderReport } from "../../../soak/report/report.ts";
import { soak } from "../../../soak/soak.ts";
import { KINDS } from "../../../soak/traffic/kinds.ts";
import { entry } from "../../support/entry.ts";

/** Kinds that are not requests, or whose client may disconnect before the request arrives. */
const UNTOLD = /^(no HTTP|huge head|unfinished head|left .*)$/;

test("seconds of mixed traffic and faults lose nothing and leave nothing behind", async () => {
  const report = await soak({ seconds: 4, seed: 1, rate: 60, workers: 1, entry: entry() });
  expect(hasPassed(report), renderReport(report)).toBe(true);
  const missing = Object.keys(KINDS).filter(
    (kind) => !UNTOLD.test(kind) && !(kind in report.right),
  );
  expect(missing).toEqual([]);
  expect(Object.keys(report.faults).toSorted()).toEqual(Object.keys(FAULTS).toSorted());
}, 60_000);
