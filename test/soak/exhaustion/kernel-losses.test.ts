import { expect, it } from "vitest";
import {
  kernelLosses,
  lossesBetween,
  lossesLine,
} from "../../../soak/exhaustion/victim/kernel-losses.ts";

it.runIf(process.platform === "linux")("reads what the kernel counts", () => {
  const { overflows, synsAgain, packets } = kernelLosses();
  for (const count of [overflows, synsAgain, packets]) expect(count).toBeGreaterThanOrEqual(0);
});

it("says what was lost meanwhile, and nothing when nothing was", () => {
  const before = { overflows: 7, synsAgain: 5, packets: 1 };
  expect(lossesLine(lossesBetween(before, before))).toBeUndefined();
  const after = { overflows: 9, synsAgain: 6, packets: 1 };
  expect(lossesLine(lossesBetween(before, after))).toBe(
    "the kernel: 2 connections beyond a listening socket's queue, 1 SYNs sent again after 1 s, 0 packets dropped",
  );
});
