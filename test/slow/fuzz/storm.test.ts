/** Storms: odd clients meet odd backends, with innocent neighbours beside them. */
import { randomInt } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { FaultKind } from "../../../fuzz/judge/fault.ts";
import { startFront } from "../../../fuzz/storm/front.ts";
import { type Kind, KIND_NAMES } from "../../../fuzz/storm/kinds.ts";
import { startNaiveFront } from "../../../fuzz/storm/naive-front.ts";
import { storm } from "../../../fuzz/storm/storm.ts";
import { storms } from "../../../fuzz/storm/storms.ts";

/** A busy machine may take long. */
const PATIENCE_MS = 90_000;

/** Drawn once, so that a retry meets the same storm. Odd seeds are over TLS. */
const RANDOM = randomInt(1_000_000);

describe("in Sallyport", () => {
  test.each([1, 2, RANDOM])(
    "a storm from seed %i costs no innocent request, and leaves nothing behind",
    async (seed) => {
      const { faults, attacks, innocent } = await storm({
        start: startFront,
        seed,
        kinds: new Set(KIND_NAMES),
      });
      expect(faults).toEqual([]);
      // A storm that meets nobody shows nothing.
      expect(attacks).toBeGreaterThan(50);
      expect(innocent).toBeGreaterThan(20);
    },
    PATIENCE_MS,
  );
});

describe("in a naive front", () => {
  const FOUND: readonly (readonly [FaultKind, readonly Kind[]])[] = [
    ["trouble", ["http1", "forbidden"]],
    ["lost", ["http1"]],
    ["left", ["http1", "uploads", "unfinished", "leaving", "silence"]],
    ["outlived", ["http1", "revocations"]],
  ];

  test.each(FOUND)(
    "what is %s is found",
    async (kind, kinds) => {
      const { faults } = await storm({ start: startNaiveFront, seed: 2, kinds: new Set(kinds) });
      expect(faults.map((each) => each.kind)).toContain(kind);
    },
    PATIENCE_MS,
  );

  test(
    "a finding is narrowed down to the kinds that it takes",
    async () => {
      const { findings } = await storms({
        start: startNaiveFront,
        seed: 4,
        seconds: 1,
        lastsMs: 1_000,
        kinds: ["http1", "trailers", "forbidden", "interim"],
        counted: ["trouble"],
      });
      expect(findings).toMatchObject([{ kinds: ["http1", "forbidden"], repeated: true }]);
    },
    PATIENCE_MS,
  );
});
