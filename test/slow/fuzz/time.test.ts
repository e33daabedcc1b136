/** The fuzzer finds faults that block the event loop, with the cases that it always generates. */
import { describe, expect, test } from "vitest";
import type { ClassName } from "../../../fuzz/classes.ts";
import type { FaultKind } from "../../../fuzz/judge/fault.ts";
import { judgeLap } from "../../../fuzz/judge/time.ts";
import { fuzz, repeat } from "../../../fuzz/search/fuzz.ts";
import { MeasuredStage } from "../../../fuzz/search/measured-stage.ts";
import { startSallyport } from "../../../fuzz/subject/sallyport.ts";

/** A busy machine may take long. */
const PATIENCE_MS = 180_000;

const BLOCKING = new URL("../../support/blocking.ts", import.meta.url).href;
const startBlocking = (backend: string) => startSallyport(backend, false, [BLOCKING]);

const FOUND: readonly (readonly [ClassName, FaultKind])[] = [
  ["answers", "stall"],
  ["repetition", "cost"],
  ["heads", "stall"],
];

test.each(FOUND)(
  "%s finds a %s in a Sallyport with such faults, and reproduces it from its seed and path",
  async (name, kind) => {
    const { findings } = await fuzz({
      start: startBlocking,
      shrinkingSeconds: 0.3,
      classes: [name],
      kinds: [kind],
      seed: 11,
      seconds: 90,
      first: true,
    });
    expect(findings).toMatchObject([{ name, kind, repeated: true }]);
    const [{ seed, path } = { seed: 0, path: "" }] = findings;
    const again = await repeat({ start: startBlocking, name, seed, path });
    expect(again?.faults.map((fault) => fault.kind)).toContain(kind);
  },
  PATIENCE_MS,
);

describe("a single case", () => {
  const HOST = "Host: localhost\r\n";
  const get = (fields: string, interim = "") => ({
    rounds: [[`GET /public/a HTTP/1.1\r\n${HOST}${fields}\r\n`]],
    patient: false,
    answer: { interim, fields: "" },
  });
  const wrong = `HTTP/1.1 103 Early Hints\r\nLink: <x>${"; a=b".repeat(60)} "\r\n\r\n`;
  const many = Array.from({ length: 100 }, (_, i) => `Connection: x-${i}\r\n`).join("");

  test(
    "that blocks is found each time, and the next one is not",
    async () => {
      await using stage = new MeasuredStage(startBlocking);
      const kinds = async (play: ReturnType<typeof get>): Promise<string[]> =>
        (await stage.playAlone(play)).map(({ kind }) => kind);
      expect(await kinds(get("", wrong))).toEqual(["stall"]);
      expect(await kinds(get(many))).toEqual(["cost"]);
      expect(await kinds(get("", wrong))).toEqual(["stall"]);
      expect(await kinds(get("X: y\r\n"))).toEqual([]);
    },
    PATIENCE_MS,
  );

  test(
    "that was found earlier is fixed in Sallyport",
    async () => {
      await using stage = new MeasuredStage(startSallyport);
      for (const play of FORMERLY) expect(await stage.playAlone(play)).toEqual([]);
    },
    PATIENCE_MS,
  );

  /** Cases that the fuzzer found in revision c7a7604. */
  const FORMERLY = [
    get("", `HTTP/1.1 103 Early Hints\r\nLink: <x>${"; a=b".repeat(19)}"\r\n\r\n`),
    get("", `HTTP/1.1 103 Early Hints\r\nLink: <x>${"; a=b;a".repeat(30)} "\r\n\r\n`),
    get("", "HTTP/1.1 100 Continue\r\nLink: <x>;a\r\n\r\n"),
    get(
      Array.from({ length: 190 }, (_, i) => {
        const names = Array.from({ length: 9 }, (_, j) => `n${i}-${j}`);
        return `Connection: ${names.join(",")}, \r\n`;
      })
        .join("")
        .slice(0, 14_000)
        .replace(/[^\n]*$/, ""),
    ),
  ];
});

test("the longest turn of a lap is judged first", () => {
  expect(judgeLap(undefined).map(({ kind }) => kind)).toEqual(["stall"]);
  expect(judgeLap({ spentMs: 60, longestMs: 51 }, 5).map(({ kind }) => kind)).toEqual(["stall"]);
  expect(judgeLap({ spentMs: 6, longestMs: 6 }, 5).map(({ kind }) => kind)).toEqual(["cost"]);
  expect(judgeLap({ spentMs: 6, longestMs: 6 })).toEqual([]);
});
