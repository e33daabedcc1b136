/** How many postponed connections resume after a turn of the event loop. */
import { expect, it } from "vitest";
import { ResumeRate } from "../../src/server/listener/reading/waiting-clients.ts";

const CALM = { end: 0, lasted: 1, overran: false, accepted: false };

it("resumes fewer after turns that overran, but always one, and more after short turns", () => {
  const rate = new ResumeRate(20);
  expect(rate.after(CALM)).toBe(8);
  const overran = { ...CALM, lasted: 30, overran: true };
  expect([1, 2, 3, 4, 5].map(() => rate.after(overran))).toEqual([4, 2, 1, 1, 1]);
  expect(rate.after({ ...CALM, lasted: 10 })).toBe(1);
  expect([1, 2, 3].map(() => rate.after(CALM))).toEqual([2, 4, 8]);
  for (let i = 0; i < 20; i += 1) rate.after(CALM);
  expect(rate.after(CALM)).toBe(1_024);
});

it("leaves four fifths of the time to accepting while connections are accepted", () => {
  const rate = new ResumeRate(20);
  const accepting = { ...CALM, lasted: 10, accepted: true };
  rate.after(CALM);
  expect(rate.after({ ...accepting, end: 100 })).toBe(0);
  expect(rate.after({ ...accepting, end: 139 })).toBe(0);
  expect(rate.after({ ...accepting, end: 140 })).toBe(8);
  expect(rate.after({ ...CALM, lasted: 10, end: 141 })).toBe(8);
});
