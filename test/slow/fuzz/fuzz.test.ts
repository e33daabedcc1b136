import { describe, expect, test } from "vitest";
import { CLASS_NAMES, type ClassName } from "../../../fuzz/classes.ts";
import type { FaultKind } from "../../../fuzz/judge/fault.ts";
import { fuzz, repeat } from "../../../fuzz/search/fuzz.ts";
import { startNaiveConnections } from "../../../fuzz/subject/naive-connections.ts";
import { startNaive } from "../../../fuzz/subject/naive.ts";
import { startSallyport } from "../../../fuzz/subject/sallyport.ts";
import type { StartSubject } from "../../../fuzz/subject/subject.ts";

/** A busy machine may take long. */
const PATIENCE_MS = 90_000;

/** The same cases each time, however fast the machine is: about two seconds on an idle one. */
const CASES = 1_000;

test(
  "finds nothing in Sallyport in a few seconds",
  async () => {
    const { findings, tally } = await fuzz({
      start: startSallyport,
      classes: CLASS_NAMES,
      seed: 20_261,
      cases: CASES,
      seconds: 60,
      shrinkingSeconds: 5,
    });
    expect(findings).toEqual([]);
    for (const [name, count] of tally.counts) {
      expect(count.cases, name).toBeGreaterThan(0);
      if (name === "config") continue;
      // Cases that are never forwarded test nothing.
      expect(count.forwarded, name).toBeGreaterThan(count.cases / 20);
      expect(count.refused, name).toBeGreaterThan(0);
    }
  },
  PATIENCE_MS,
);

describe("in a naive proxy", () => {
  const FOUND: readonly (readonly [ClassName, FaultKind, StartSubject])[] = [
    ["framing", "smuggled", startNaive],
    ["paths", "unauthorised", startNaive],
    ["headers", "forged", startNaive],
    ["http2", "forged", startNaiveConnections],
    ["http2", "smuggled", startNaiveConnections],
    ["frames", "body", startNaiveConnections],
    ["alpn", "smuggled", startNaiveConnections],
    ["proxied", "smuggled", startNaiveConnections],
  ];

  test.each(FOUND)(
    "%s finds a case that is %s, and reproduces it from its seed and path",
    async (name, kind, start) => {
      const { findings } = await fuzz({
        start,
        shrinkingSeconds: 0.3,
        classes: [name],
        kinds: [kind],
        seed: 7,
        seconds: 30,
        first: true,
      });
      expect(findings).toMatchObject([{ name, kind, repeated: true }]);
      const [{ seed, path } = { seed: 0, path: "" }] = findings;
      const again = await repeat({ start, name, seed, path });
      expect(again?.faults.map((fault) => fault.kind)).toContain(kind);
    },
    PATIENCE_MS,
  );
});
