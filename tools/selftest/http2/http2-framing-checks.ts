import { type Attempt, type Check, single } from "../check-result.ts";
import { authorization, protectedPath, smuggled, type Target } from "../deployment.ts";
import { fail, intact, pass, refusedOrUnauthorized, refusedStream } from "../expectations.ts";
import {
  END_HEADERS,
  END_STREAM,
  type Field,
  FRAME,
  frame,
  headerBlock,
  PADDED,
} from "./http2-frames.ts";
import { fieldsOf, onStream, pseudo, type StreamRequest } from "./http2-requests.ts";

/** Changes the fields of a valid request. */
type Change = (fields: readonly Field[], mark: string) => readonly Field[];

const added =
  (...more: Field[]): Change =>
  (fields) => [...fields, ...more];
const without =
  (name: string): Change =>
  (fields) =>
    fields.filter(([each]) => each !== name);
const instead =
  (name: string, value: (before: string) => string): Change =>
  (fields) =>
    fields.map(([each, before]) => [each, each === name ? value(before) : before]);

/** Malformed field sections (RFC 9113 §8.1.1), most of which would mean something else if translated to HTTP/1.1. */
export const HEADS: readonly (readonly [name: string, change: Change])[] = [
  ["name-in-upper-case", added(["X-Selftest", "1"])],
  ["connection", added(["connection", "close"])],
  ["keep-alive", added(["keep-alive", "timeout=5"])],
  ["proxy-connection", added(["proxy-connection", "close"])],
  ["transfer-encoding", added(["transfer-encoding", "chunked"])],
  ["upgrade", added(["upgrade", "h2c"])],
  ["te-other-than-trailers", added(["te", "gzip"])],
  ["method-twice", (fields) => [[":method", "POST"], ...fields]],
  ["path-twice", (fields, mark) => [[":path", `/${mark}`], ...fields]],
  ["authority-twice", (fields) => [[":authority", "other.example"], ...fields]],
  ["scheme-twice", (fields) => [[":scheme", "http"], ...fields]],
  ["pseudo-behind-field", (fields) => [["x-selftest", "1"], ...fields]],
  ["pseudo-unknown", (fields) => [[":selftest", "1"], ...fields]],
  ["pseudo-of-answers", (fields) => [[":status", "200"], ...fields]],
  ["pseudo-protocol-without-connect", (fields) => [[":protocol", "websocket"], ...fields]],
  ["no-method", without(":method")],
  ["no-path", without(":path")],
  ["no-scheme", without(":scheme")],
  ["empty-method", instead(":method", () => "")],
  ["empty-path", instead(":path", () => "")],
  ["method-with-request", instead(":method", () => "GET /selftest HTTP/1.1\r\nx: ")],
  ["method-with-blank", instead(":method", () => "GET /selftest")],
  ["method-in-lower-case", instead(":method", () => "get")],
  ["path-with-line-end", instead(":path", (path) => `${path} HTTP/1.1\r\nx-selftest: 1\r\nx: `)],
  ["path-with-line-feed", instead(":path", (path) => `${path}\nx`)],
  ["path-with-nul", instead(":path", (path) => `${path}\0x`)],
  ["authority-with-line-end", instead(":authority", (host) => `${host}\r\nx-selftest: 1`)],
  ["length-sign", added(["content-length", "+0"])],
  ["length-of-no-body", added(["content-length", "4"])],
  ["length-list", added(["content-length", "0, 0"])],
];

/** Values of `content-length` that do not match a body of four bytes. */
export const LENGTHS: readonly (readonly [name: string, lengths: readonly string[]])[] = [
  ["length-too-short", ["2"]],
  ["length-zero", ["0"]],
  ["length-too-long", ["9"]],
  ["length-twice", ["4", "2"]],
  ["length-hexadecimal", ["0x4"]],
  ["length-over-64-bits", ["18446744073709551620"]],
];

/** Trailers that would change the meaning of the request, or that are not allowed as trailers (RFC 9113 §8.1). */
export const TRAILERS: readonly (readonly [name: string, trailers: readonly Field[]])[] = [
  ["trailer-path", [[":path", "/selftest"]]],
  ["trailer-method", [[":method", "DELETE"]]],
  ["trailer-transfer-encoding", [["transfer-encoding", "chunked"]]],
  ["trailer-connection", [["connection", "close"]]],
];

/** Padding of seven bytes that looks like the end of a chunked body. */
const PADDING = "\r\n0\r\n\r\n";

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** Frames that are a connection error instead of a request on stream 1 (RFC 9113 §5.1, §6.10; RFC 7541 §2.3.3). */
const BROKEN: readonly (readonly [name: string, frames: (block: Buffer) => readonly Buffer[]])[] = [
  ["stream-even", (block) => [frame(FRAME.headers, END_HEADERS | END_STREAM, 2, block)]],
  ["stream-zero", (block) => [frame(FRAME.headers, END_HEADERS | END_STREAM, 0, block)]],
  ["data-before-head", () => [frame(FRAME.data, END_STREAM, 1, "selftest")]],
  ["continuation-alone", (block) => [frame(FRAME.continuation, END_HEADERS, 1, block)]],
  [
    "frame-within-head",
    (block) => [
      frame(FRAME.headers, END_STREAM, 1, block.subarray(0, 20)),
      frame(FRAME.data, END_STREAM, 1, "x"),
      frame(FRAME.continuation, END_HEADERS, 1, block.subarray(20)),
    ],
  ],
  [
    "index-that-is-none",
    (block) => [
      frame(
        FRAME.headers,
        END_HEADERS | END_STREAM,
        1,
        Buffer.concat([block, Buffer.from([0xff, 0xff, 0x7f])]),
      ),
    ],
  ],
  [
    "padding-longer-than-frame",
    (block) => [
      frame(
        FRAME.headers,
        END_HEADERS | END_STREAM | PADDED,
        1,
        Buffer.concat([Buffer.from([255]), block.subarray(0, 200)]),
      ),
    ],
  ],
];

/** Returns checks with frames and field sections that two parsers could read as different requests. */
export function http2FramingChecks(target: Target): Check[] {
  const head = (mark: string, method = "GET"): Field[] => [
    ...pseudo(target, protectedPath(target, mark), method),
    ...fieldsOf([authorization(target)]),
  ];
  const refuse = (name: string, build: (mark: string) => StreamRequest): Check =>
    single(`framing/${name}`, refusedStream, (mark) => onStream(1, build(mark)));
  return [
    ...HEADS.map(([name, change]) =>
      refuse(name, (mark) => ({ fields: change(head(mark), mark) })),
    ),
    ...LENGTHS.map(([name, lengths]) =>
      refuse(name, (mark) => ({
        fields: [...head(mark, "POST"), ...lengthFields(lengths)],
        body: ["abcd"],
      })),
    ),
    ...TRAILERS.map(([name, trailers]) =>
      refuse(name, (mark) => ({ fields: head(mark, "POST"), body: ["abcd"], trailers })),
    ),
    ...BROKEN.map(([name, frames]) =>
      single(`framing/${name}`, refusedStream, (mark) => latin1(frames(headerBlock(head(mark))))),
    ),
    ...METHODS.map((method) => bodyKept(target, method, (mark) => head(mark, method))),
    ...methodChecks(head),
    cutShort(target, (mark) => head(mark, "POST")),
  ];
}

/** Returns a valid request that follows on the same connection, on stream 3. */
function following(target: Target, mark: string): string {
  const path = protectedPath(target, mark, "following");
  return onStream(3, { fields: [...pseudo(target, path), ...fieldsOf([authorization(target)])] });
}

function latin1(frames: readonly Buffer[]): string {
  return Buffer.concat(frames).toString("latin1");
}

function lengthFields(lengths: readonly string[]): Field[] {
  return lengths.map((length) => ["content-length", length] as const);
}

/** A body in unusual frames must arrive as one body, framed by the proxy that translates it to HTTP/1.1. */
function bodyKept(target: Target, method: string, head: (mark: string) => Field[]): Check {
  const attempt = (what: string, bytes: Attempt["bytes"]): Attempt => ({
    what,
    bytes: (mark) => bytes(mark) + following(target, mark),
    methods: [method, "GET"],
  });
  const body = (mark: string): string => smuggled(target, mark);
  return {
    name: `framing/body-${method}`,
    tries: [
      attempt("without a length", (mark) => {
        const parts = ["", body(mark).slice(0, 5), "", body(mark).slice(5), ""];
        return onStream(1, { fields: head(mark), body: parts });
      }),
      attempt("with a length", (mark) => {
        const fields = [...head(mark), ...lengthFields([String(body(mark).length)])];
        return onStream(1, { fields, body: [body(mark)] });
      }),
      attempt("padded, behind a head in parts", (mark) => {
        const block = headerBlock(head(mark));
        return latin1([
          frame(FRAME.headers, 0, 1, block.subarray(0, 7)),
          frame(FRAME.continuation, 0, 1, block.subarray(7, 30)),
          frame(FRAME.continuation, END_HEADERS, 1, block.subarray(30)),
          frame(FRAME.data, END_STREAM | PADDED, 1, `\x07${body(mark)}${PADDING}`),
        ]);
      }),
    ],
    expectation: intact(method, body),
  };
}

function methodChecks(head: (mark: string, method?: string) => Field[]): Check[] {
  const notServed = (name: string, fields: (mark: string) => readonly Field[]): Check =>
    single(`framing/${name}`, refusedOrUnauthorized, (mark) =>
      onStream(1, { fields: fields(mark), body: [] }),
    );
  const bare = [":method", ":authority", "authorization"];
  return [
    notServed("method-TRACE", (mark) => head(mark, "TRACE")),
    notServed("method-CONNECT", (mark) =>
      head(mark, "CONNECT").filter(([name]) => bare.includes(name)),
    ),
    notServed("connect-udp", (mark) => [[":protocol", "connect-udp"], ...head(mark, "CONNECT")]),
    notServed("connect-h2c", (mark) => [[":protocol", "h2c"], ...head(mark, "CONNECT")]),
  ];
}

/** A body whose stream was reset is incomplete, whatever the error code of the reset. */
function cutShort(target: Target, head: (mark: string) => Field[]): Check {
  const attempt = (code: number): Attempt => ({
    what: `reset with ${code}`,
    bytes: (mark) =>
      latin1([
        frame(FRAME.headers, END_HEADERS, 1, headerBlock(head(mark))),
        frame(FRAME.data, 0, 1, "half"),
        frame(FRAME.reset, 0, 1, Buffer.from([0, 0, 0, code])),
      ]) + following(target, mark),
    methods: ["POST", "GET"],
  });
  return {
    name: "framing/body-cut-by-reset",
    tries: [attempt(0), attempt(8)],
    expectation: {
      close: false,
      judge: ({ arrived }) =>
        arrived?.some(({ url }) => url.endsWith("/attack")) === true
          ? fail("an incomplete body arrived as a complete one")
          : pass("it did not arrive"),
    },
  };
}
