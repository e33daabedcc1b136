import fc from "fast-check";
import { expect, it } from "vitest";
import { TimingWheel, WheelEntry } from "../../src/lib/async/timing-wheel.ts";

class Entry extends WheelEntry<Entry> {
  readonly endsAt: number;
  constructor(endsAt: number) {
    super();
    this.endsAt = endsAt;
  }
}

const START = 1_800_000_000_000;

/** Removes and returns the entries that have ended, the way users of a wheel do. */
function endedBy(wheel: TimingWheel<Entry>, now: number): Entry[] {
  const ended: Entry[] = [];
  for (const entry of wheel.due(now)) {
    if (entry.endsAt > now) continue;
    wheel.remove(entry);
    ended.push(entry);
  }
  return ended;
}

it("passes each entry at its end, for any clock steps, additions, removals and moves", () => {
  const step = fc.record({
    ahead: fc.integer({ min: -2_000, max: 400_000 }),
    adds: fc.array(fc.integer({ min: -500, max: 600_000 }), { maxLength: 5 }),
    removes: fc.array(fc.nat(), { maxLength: 2 }),
    moves: fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 300_000 })), { maxLength: 2 }),
  });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const wheel = new TimingWheel<Entry>(START);
      let now = START;
      let there: Entry[] = [];
      for (const { ahead, adds, removes, moves } of steps) {
        for (const after of adds) {
          const entry = new Entry(now + after);
          wheel.add(entry, entry.endsAt);
          there.push(entry);
        }
        for (const index of removes) {
          const entry = there[index % Math.max(1, there.length)];
          if (entry === undefined) continue;
          wheel.remove(entry);
          wheel.remove(entry);
          there = there.filter((each) => each !== entry);
        }
        for (const [index] of moves) {
          const entry = there[index % Math.max(1, there.length)];
          if (entry !== undefined) wheel.add(entry, entry.endsAt);
        }
        now += ahead;
        const ended = new Set(endedBy(wheel, now));
        expect(ended).toEqual(new Set(there.filter(({ endsAt }) => endsAt <= now)));
        there = there.filter((entry) => !ended.has(entry));
        expect(wheel.size).toBe(there.length);
        expect(new Set(wheel.all())).toEqual(new Set(there));
      }
    }),
    { numRuns: 300 },
  );
});

it("does not check entries that end much later", () => {
  const wheel = new TimingWheel<Entry>(START);
  for (let index = 0; index < 10_000; index += 1) {
    wheel.add(new Entry(START + 1), START + 5 * 3_600_000 + index * 250);
  }
  let passed = 0;
  // A minute, with four checks per second.
  for (let now = START; now < START + 60_000; now += 250) passed += [...wheel.due(now)].length;
  expect(passed).toBeLessThan(10_000);
});
