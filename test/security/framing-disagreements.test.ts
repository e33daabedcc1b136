/**
 * Every way to contradict oneself about the end of a body. Request smuggling needs two parsers that disagree: one
 * uses `Content-Length`, the other `Transfer-Encoding` (CL.TE, TE.CL), one accepts a coding that the other does not
 * know (TE.TE: `xchunked`, `chunked;a=b`, `,chunked`), one accepts `+5` or `5,5` as a number, one accepts a transfer
 * coding in HTTP/1.0, or a body for a method that has none. Such bugs came back in Node (CVE-2022-32213 to -32215,
 * CVE-2022-35256, CVE-2024-27982), HAProxy, Traefik and http-proxy, each time with one more spelling. So these tests
 * combine all spellings of the one with all spellings of the other: messages that RFC 9112 §6 frames unambiguously
 * arrive with exactly their bytes, and everything else gets one 400 and ends the connection.
 */
import { METHODS } from "node:http";
import { describe, expect, it } from "vitest";
import { expectRefusal } from "../support/envelope.ts";
import { allOf, attackMarked, targetsOf } from "../support/marked-attack.ts";
import { useNaiveProxy, useSallyport } from "../support/pair.ts";
import { chunked, request } from "../support/raw-client.ts";

const smuggled = (mark: string): string =>
  request([`GET /admin/${mark} HTTP/1.1`, "Host: backend"]);
/** `smuggled` has this length for every mark. */
const LENGTH = smuggled("m000").length;
const markOf = (index: number): string => `m${String(index).padStart(3, "0")}`;

/** Field lines with a length, and how a strict parser reads them. */
const LENGTHS: readonly { readonly field?: string; readonly valid: boolean }[] = [
  { valid: true },
  { field: `Content-Length: ${LENGTH}`, valid: true },
  { field: `content-length:\t00${LENGTH} `, valid: true },
  ...[`+${LENGTH}`, `-${LENGTH}`, "0x1f", `${LENGTH},${LENGTH}`, `${LENGTH} ${LENGTH}`].map(
    invalid,
  ),
  ...[`${LENGTH}.0`, "1e1", "", `${LENGTH};`, `${LENGTH}\x0b`, `\xa0${LENGTH}`].map(invalid),
  ...["9007199254740993", "18446744073709551616", "99999999999999999999999"].map(invalid),
];

function invalid(value: string): { field: string; valid: false } {
  return { field: `Content-Length: ${value}`, valid: false };
}

/** Field lines with a coding, and how a strict parser reads them. */
const CODINGS: readonly { readonly field?: string; readonly valid: boolean }[] = [
  { valid: true },
  { field: "Transfer-Encoding: chunked", valid: true },
  { field: "TRANSFER-encoding:\tCHUNKED ", valid: true },
  ...["gzip, chunked", "chunked, chunked", "chunked, gzip", "identity", "xchunked"].map(notCoded),
  ...["chunked;a=b", '"chunked"', "", ",chunked", "chunked,", "chunk", "chunked x"].map(notCoded),
  ...["\x0bchunked", "chunked\x0b", "\xa0chunked", "chunked\xa0", "ch\x00unked"].map(notCoded),
  { field: "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", valid: false },
  { field: "Transfer-Encoding: chunked\r\nTransfer-Encoding: x", valid: false },
  { field: "Transfer-Encoding : chunked", valid: false },
  { field: "Transfer-Encoding\t: chunked", valid: false },
  { field: "Transfer-Encoding\x0b: chunked", valid: false },
  { field: " Transfer-Encoding: chunked", valid: false },
  { field: "Transfer-Encoding:\r\n chunked", valid: false },
  { field: "X: y\nTransfer-Encoding: chunked", valid: false },
  { field: "X: y\rTransfer-Encoding: chunked", valid: false },
];

function notCoded(value: string): { field: string; valid: false } {
  return { field: `Transfer-Encoding: ${value}`, valid: false };
}

interface Combination {
  readonly name: string;
  readonly mark: string;
  readonly bytes: string;
  /** Whether RFC 9112 §6 leaves no doubt where the body ends. */
  readonly clear: boolean;
  readonly body: string;
}

const COMBINATIONS: readonly Combination[] = [
  ...CODINGS.map((coding) => ({ version: "1.1", coding })),
  ...CODINGS.slice(0, 6).map((coding) => ({ version: "1.0", coding })),
]
  .flatMap((row) => LENGTHS.map((length) => ({ ...row, length })))
  .map(({ version, coding, length }, index) => {
    const mark = markOf(index);
    const head = [`POST /public/${mark} HTTP/${version}`, "Host: localhost"];
    const fields = [coding.field, length.field].filter((field) => field !== undefined);
    const isCoded = coding.field !== undefined;
    const both = isCoded && length.field !== undefined;
    const clear = coding.valid && length.valid && !both && !(isCoded && version === "1.0");
    const body = clear && fields.length === 0 ? "" : smuggled(mark);
    const framed = isCoded || !clear ? chunked(body) : body;
    return {
      name: JSON.stringify([version, ...fields]),
      mark,
      bytes: request([...head, ...fields], framed),
      clear,
      body,
    };
  });

/** As many as one test can try on a busy machine. */
const SLICES = Array.from({ length: Math.ceil(COMBINATIONS.length / 85) }, (_, i) => {
  const rows = COMBINATIONS.slice(i * 85, (i + 1) * 85);
  return [rows[0]?.name ?? "", rows] as const;
});

const BODY_METHODS = METHODS.filter(
  (method) => !["CONNECT", "TRACE", "SOURCE"].includes(method),
).flatMap((method) => [true, false].map((isChunked) => ({ method, isChunked })));

function withBody(method: string, isChunked: boolean, mark: string, version = "1.1"): string {
  const body = smuggled(mark);
  const framing = isChunked ? "Transfer-Encoding: chunked" : `Content-Length: ${body.length}`;
  const head = [`${method} /public/${mark} HTTP/${version}`, "Host: localhost", framing];
  return request(head, isChunked ? chunked(body) : body);
}

/** Lines that are not HTTP/1.x request lines (RFC 9112 §3), or that have a version with other framing rules. */
const LINES: readonly string[] = [
  "GET /public/x",
  "GET /public/x HTTP/0.9",
  "GET /public/x HTTP/1.2",
  "GET /public/x HTTP/2.0",
  "GET /public/x HTTP/3.0",
  "GET /public/x HTTP/01.1",
  "GET /public/x HTTP/1.1 ",
  "GET /public/x http/1.1",
  "GET /public/x HTTPS/1.1",
  "GET\t/public/x\tHTTP/1.1",
  " GET /public/x HTTP/1.1",
  "get /public/x HTTP/1.1",
  "PRI * HTTP/2.0",
];

/** TRACE is always refused; if it is also ambiguous, the data after it is not read as a request. */
const TRACES: readonly { readonly name: string; readonly bytes: string }[] = [
  { name: "a coding before chunked", fields: ["Transfer-Encoding: gzip, chunked"] },
  {
    name: "a length in addition to chunked",
    fields: ["Content-Length: 5", "Transfer-Encoding: chunked"],
  },
  { name: "a coding in HTTP/1.0", fields: ["Transfer-Encoding: chunked"], version: "1.0" },
].map(({ name, fields, version = "1.1" }) => {
  const keep = version === "1.0" ? ["Connection: keep-alive"] : [];
  const head = [`TRACE /public/x HTTP/${version}`, "Host: localhost", ...keep, ...fields];
  return { name, bytes: request(head, chunked(smuggled("m000"))) };
});

const AFTER = request(["GET /public/after HTTP/1.1", "Host: localhost"]);

describe("Sallyport", () => {
  const standing = useSallyport(undefined, { withoutToken: true });

  it.each(SLICES)(
    "forwards unambiguous messages and refuses the rest, from %s",
    async (_, rows) => {
      const { gate, backend } = standing();
      const wrong = await allOf(rows, async ({ name, mark, bytes, clear, body }) => {
        const { statuses, ended, ran } = await attackMarked(gate, backend, mark, bytes, {
          responses: clear ? 1 : Infinity,
        });
        const arrived = ran().map((seen) => [seen.startLine, seen.body.toString("latin1")]);
        const expected = clear ? [[`POST /public/${mark} HTTP/1.1`, body]] : [];
        const asExpected =
          JSON.stringify(arrived) === JSON.stringify(expected) &&
          JSON.stringify(statuses) === (clear ? "[200]" : "[400]") &&
          (clear || ended === "closed");
        return asExpected ? [] : [{ name, statuses, ended, arrived }];
      });
      expect(wrong.flat()).toEqual([]);
      expect(backend.seen().filter((line) => line.includes("/admin"))).toEqual([]);
    },
  );

  it("keeps the body of every method a body", async () => {
    const { gate, backend } = standing();
    await allOf(BODY_METHODS, async ({ method, isChunked }, index) => {
      const mark = markOf(index);
      const bytes = withBody(method, isChunked, mark);
      const { statuses, ran } = await attackMarked(gate, backend, mark, bytes, {
        head: method === "HEAD",
      });
      expect([method, ...statuses]).toEqual([method, 200]);
      expect(targetsOf(ran())).toEqual([`${method} /public/${mark}`]);
      expect(ran()[0]?.body.toString()).toBe(smuggled(mark));
    });
    expect(backend.seen().filter((line) => line.includes("/admin"))).toEqual([]);
  });

  it.each(["GET", "HEAD", "DELETE", "OPTIONS", "POST"])(
    "keeps a body of %s in HTTP/1.0 a body",
    async (method) => {
      const { gate, backend } = standing();
      const bytes = withBody(method, false, "m000", "1.0");
      await attackMarked(gate, backend, "m000", bytes, { responses: Infinity });
      expect(backend.seen()).toEqual([`${method} /public/m000`]);
      expect(backend.requests()[0]?.body.toString()).toBe(smuggled("m000"));
    },
  );

  it.each([true, false])("forwards nothing of a TRACE with a body (chunked: %s)", async (coded) => {
    const { gate, backend } = standing();
    const bytes = withBody("TRACE", coded, "m000");
    const { statuses } = await attackMarked(gate, backend, "m000", bytes);
    expect(statuses).toEqual([405]);
    expect(backend.seen()).toEqual([]);
  });

  it.each(TRACES)("executes nothing after a TRACE with $name", async ({ bytes }) => {
    const { gate, backend } = standing();
    const options = { responses: 2 };
    const { exchange } = await attackMarked(gate, backend, "m000", bytes + AFTER, options);
    expect(backend.seen()).toEqual([]);
    expectRefusal(exchange, 400);
  });

  it.each(LINES)("refuses the line %j", async (line) => {
    const { gate, backend } = standing();
    const bytes = request([line, "Host: localhost"]);
    const { exchange } = await attackMarked(gate, backend, "x", bytes, { responses: Infinity });
    expect(backend.seen()).toEqual([]);
    expectRefusal(exchange, 400);
  });
});

describe("a naive proxy", () => {
  const standing = useNaiveProxy();

  it("forwards combinations that have two readings", async () => {
    const { gate, backend } = standing();
    const doubtful = COMBINATIONS.filter(({ clear }) => !clear).filter((_, i) => i % 5 === 0);
    const passed = await allOf(doubtful, async ({ mark, bytes }) => {
      const after = await attackMarked(gate, backend, mark, bytes, { timeoutMs: 1_000 });
      return after.ran().length > 0;
    });
    expect(passed).toContain(true);
  });

  it("lets the backend execute bodies", async () => {
    const { gate, backend } = standing();
    const rows = BODY_METHODS.filter(({ method }) => /^(?:DELETE|OPTIONS|POST)$/.test(method));
    const ran = await allOf(rows, async ({ method, isChunked }, index) => {
      const mark = markOf(index);
      await attackMarked(gate, backend, mark, withBody(method, isChunked, mark));
      const after = await attackMarked(gate, backend, mark, AFTER);
      return targetsOf(after.ran()).includes(`GET /admin/${mark}`);
    });
    expect(ran).toContain(true);
  });

  it("forwards requests of other versions, and TRACE with an ambiguous body", async () => {
    const { gate, backend } = standing();
    await attackMarked(gate, backend, "x", request(["GET /public/x HTTP/0.9", "Host: localhost"]));
    for (const { bytes } of TRACES) await attackMarked(gate, backend, "x", bytes);
    expect(backend.seen()).toContain("GET /public/x");
    expect(backend.seen()).toContain("TRACE /public/x");
  });
});
