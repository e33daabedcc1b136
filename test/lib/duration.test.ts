import { describe, expect, test } from "vitest";
import {
  formatDuration,
  formatSize,
  parseDuration,
  parseSize,
} from "../../src/lib/text/duration.ts";

describe("durations", () => {
  test.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["5m", 300_000],
    ["5h", 18_000_000],
    ["1h30m", 5_400_000],
    ["1h1m1s1ms", 3_661_001],
    ["0s", 0],
  ])("%s is %i milliseconds", (text, milliseconds) => {
    expect(parseDuration(text)).toBe(milliseconds);
    expect(parseDuration(formatDuration(milliseconds))).toBe(milliseconds);
  });

  test.each(["", "30", "s", "30 s", "-1s", "1.5s", "5M", "30m1h", "1d", "1s\n", "1e3s"])(
    "%j is invalid",
    (text) => {
      expect(parseDuration(text)).toBeUndefined();
    },
  );

  test("are formatted in the shortest form", () => {
    expect([0, 999, 90_000, 5_400_000].map(formatDuration)).toEqual([
      "0s",
      "999ms",
      "1m30s",
      "1h30m",
    ]);
  });
});

describe("sizes", () => {
  test.each([
    ["0B", 0],
    ["512B", 512],
    ["8KiB", 8192],
    ["10MiB", 10_485_760],
    ["1GiB", 1_073_741_824],
  ])("%s is %i bytes", (text, bytes) => {
    expect(parseSize(text)).toBe(bytes);
    expect(formatSize(bytes)).toBe(text);
  });

  test.each(["", "16384", "KiB", "10MB", "10mib", "1.5MiB", "-1B", "1 KiB"])(
    "%j is invalid",
    (text) => {
      expect(parseSize(text)).toBeUndefined();
    },
  );
});
