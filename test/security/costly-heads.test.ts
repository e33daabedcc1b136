/**
 * The attack: one head of 16 KB that costs far more than its size. An expression such as ` +$` tries every blank of a
 * path as a beginning, so twice the blanks take four times as long: 0.4 s of the event loop for one request without a
 * token, on a route with `paths: asSent`. path-to-regexp (CVE-2024-45296), ua-parser-js (CVE-2022-25927) and
 * http-cache-semantics (CVE-2022-25881) had the same fault. So a head that is four times as long must not cost much more
 * than four times as much processor time, however it is sent, and none may cost 20 ms.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Head, HEAD_FORMS, headCase } from "../../fuzz/generate/heads.ts";
import { MeasuredStage } from "../../fuzz/search/measured-stage.ts";
import { startSallyport } from "../../fuzz/subject/sallyport.ts";

const BYTES = 15_000;
/** On any machine; the fuzzer allows 5 ms, on a fast one. */
const MOST_MS = 20;
/** A path with all delimiters has the most readings. */
const DELIMITERS = "/%2F%5C%3B;a//%3F%23/";

/** A head of about this many bytes. */
const HEADS: readonly (readonly [string, (bytes: number) => Head])[] = [
  ["blanks inside a path", (bytes) => ({ target: `/encoded/%2F${"%20".repeat(bytes / 3)}x` })],
  [
    "blanks inside a path with many readings",
    (bytes) => ({ target: `/sent${DELIMITERS}${"%20".repeat(bytes / 3)}x` }),
  ],
  [
    "a path of delimiters",
    (bytes) => ({ target: `/sent${DELIMITERS.repeat(bytes / DELIMITERS.length)}x` }),
  ],
  [
    "a path of delimiters that may begin with a host",
    (bytes) => ({ target: `//x/%5C${DELIMITERS.repeat(bytes / DELIMITERS.length)}` }),
  ],
  [
    "slashes inside a trusted X-Forwarded-Prefix",
    (bytes) => ({
      target: "/prefixed/a",
      trusted: true,
      lines: [`X-Forwarded-Prefix: ${"/".repeat(bytes)}x`],
    }),
  ],
  [
    "broken encodings in the names of a query",
    (bytes) => ({ target: `/places/a?${"%&".repeat(bytes / 2)}` }),
  ],
  [
    "question marks in a Referer",
    (bytes) => ({ target: "/places/a", lines: [`Referer: ${"?".repeat(bytes)}`] }),
  ],
  [
    "proxies in a trusted X-Forwarded-For",
    (bytes) => ({
      target: "/public/a",
      trusted: true,
      lines: [`X-Forwarded-For: ${"::1,".repeat(bytes / 4)}::1`],
    }),
  ],
  [
    "commas in a header that many routes compare",
    (bytes) => ({ target: "/tenants/a", lines: [`X-Tenant: ${",".repeat(bytes)}`] }),
  ],
  [
    "commas in a header that many routes compare, for many readings of a path",
    (bytes) => ({
      target: `/tenants${DELIMITERS.repeat(5)}`,
      lines: [`X-Tenant: ${",".repeat(bytes)}`],
    }),
  ],
  [
    "a request line with a wrong version",
    (bytes) => ({ target: `/${"a".repeat(bytes)} HTTP/1.x\r\nX:` }),
  ],
  [
    "blanks inside a backend's Refresh",
    (bytes) => ({
      target: "/prefixed/a",
      answered: [`Refresh: 5; url=/${" ".repeat(bytes)}x`],
    }),
  ],
];

describe("four times the bytes cost about four times the time, and little", () => {
  const stack = new AsyncDisposableStack();
  let stage: MeasuredStage;
  beforeAll(async () => {
    stage = stack.use(new MeasuredStage(startSallyport));
    await stage.ready();
  });
  afterAll(() => stack.disposeAsync());

  it.each(HEADS.flatMap(([name, head]) => HEAD_FORMS.map((form) => ({ name, form, head }))))(
    "$name, as a $form",
    async ({ form, head }) => {
      const spentMs = async (bytes: number): Promise<number> =>
        (await stage.leastLap(headCase(form, head(bytes))))?.spentMs ?? Infinity;
      const [short, long] = [await spentMs(BYTES / 4), await spentMs(BYTES)];
      // A plain request costs about a millisecond, whatever its length.
      expect(long).toBeLessThan(6 * short + 4);
      expect(long).toBeLessThan(MOST_MS);
    },
  );
});
