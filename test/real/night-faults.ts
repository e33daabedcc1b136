import { expect } from "vitest";
import { until } from "../support/until.ts";
import { displaysOf, illIn, type Night } from "./night.ts";

/** Something that breaks, and what is said about it. */
export interface Fault {
  harm(): unknown;
  heal(): unknown;
  /** Its row, in every display that has rows. */
  readonly row: RegExp;
  /** What is said about it elsewhere than in its row: by the last reload, and by `check` and `doctor` about files. */
  readonly reload?: RegExp;
  readonly files?: RegExp;
  /** The displays that do not have its row. */
  readonly without?: readonly ("verbose" | "doctor")[];
}

/** How long it may take until a fault is seen, in milliseconds. */
const SEEN_MS = 10_000;
/** A failing server is asked less and less often. */
const GONE_MS = 20_000;

/** Breaks something, looks at every display, and repairs it. */
export async function expectSeen(night: Night, fault: Fault): Promise<void> {
  const { row, reload, files, without = [] } = fault;
  const ill = async (): Promise<string> => illIn(await night.top()).join("\n");
  expect(await ill()).toBe("");
  await fault.harm();
  try {
    await until(async () => row.test(await ill()), SEEN_MS);
    const { check, ...displays } = await displaysOf(night);
    for (const [name, text] of Object.entries(displays)) {
      if (!without.some((each) => each === name)) expect(text, name).toMatch(row);
    }
    if (reload !== undefined) {
      expect(displays.top).toMatch(reload);
      expect(displays.page).toMatch(reload);
    }
    if (files === undefined) expect(check).not.toMatch(/warning|error/);
    else {
      expect(check).toMatch(files);
      expect(displays.doctor).toMatch(files);
    }
    // Nothing else is accused: a failed reload has a row, and the reason.
    expect((await ill()).split("\n")).toHaveLength(reload === undefined ? 1 : 2);
  } finally {
    await fault.heal();
  }
  await until(async () => (await ill()) === "", GONE_MS);
  const { doctor, page } = await displaysOf(night);
  expect(doctor).not.toMatch(row);
  expect(page).not.toMatch(row);
}
