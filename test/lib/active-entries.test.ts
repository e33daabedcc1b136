import { expect, it } from "vitest";
import { ActiveEntries, type Activity } from "../../src/lib/async/active-entries.ts";

interface Counted extends Activity {
  looks: number;
  bytes: number;
}

function filled(count: number): { entries: ActiveEntries<number, Counted>; all: Counted[] } {
  const entries = new ActiveEntries<number, Counted>();
  const all = Array.from({ length: count }, () => ({ looks: 0, bytes: 0, active: false }));
  for (const [key, entry] of all.entries()) entries.add(key, entry);
  return { entries, all };
}

const look = (entry: Counted): boolean => {
  entry.looks += 1;
  return entry.bytes > 0;
};

const looksAt = (all: readonly Counted[]): number => all.reduce((sum, { looks }) => sum + looks, 0);

it("checks idle entries in rotation, a fortieth in each sweep", () => {
  const { entries, all } = filled(400);
  entries.sweep(look);
  const first = looksAt(all);
  expect(first).toBeGreaterThanOrEqual(400);
  for (let sweep = 0; sweep < 10; sweep += 1) entries.sweep(look);
  expect(looksAt(all) - first).toBeLessThanOrEqual(100);
  for (let sweep = 0; sweep < 80; sweep += 1) entries.sweep(look);
  // Each was checked about twice in 90 sweeps.
  expect(Math.min(...all.map(({ looks }) => looks))).toBeGreaterThanOrEqual(2);
  expect(Math.max(...all.map(({ looks }) => looks))).toBeLessThanOrEqual(5);
});

it("checks active entries in each sweep, and detects new ones by itself", () => {
  const { entries, all } = filled(80);
  const [one, other] = all as [Counted, Counted];
  entries.sweep(look);
  [one.bytes, other.bytes] = [1, 1];
  entries.activate(one);
  const [before, unseen] = [one.looks, other.looks];
  for (let sweep = 0; sweep < 100; sweep += 1) entries.sweep(look);
  expect(one.looks - before).toBe(100);
  // It was detected in the first rotation of about 40 sweeps.
  expect(other.looks - unseen).toBeGreaterThan(50);
});

it("forgets removed entries", () => {
  const { entries, all } = filled(3);
  for (const key of all.keys()) entries.remove(key);
  entries.sweep(look);
  expect([entries.size, looksAt(all)]).toEqual([0, 0]);
});
