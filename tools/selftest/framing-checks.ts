import { type Check, type Expectation, single } from "./check-result.ts";
import { intact, refused, refusedOrUnauthorized } from "./expectations.ts";
import {
  authorization,
  chunked,
  following,
  protectedPath,
  request,
  smuggled,
  type Target,
} from "./deployment.ts";

const CHUNKED = "Transfer-Encoding: chunked";

/** Headers with two framings, or with a framing that not all parsers know (RFC 9112 §6). */
const HEADS: readonly (readonly [name: string, headers: readonly string[]])[] = [
  ["te-and-cl", [CHUNKED, "Content-Length: 4"]],
  ["cl-and-te", ["Content-Length: 4", CHUNKED]],
  ["te-coding-before-chunked", ["Transfer-Encoding: gzip, chunked"]],
  ["te-two-fields", ["Transfer-Encoding: identity", CHUNKED]],
  ["te-chunked-twice", ["Transfer-Encoding: chunked, chunked"]],
  ["te-coding-after-chunked", ["Transfer-Encoding: chunked, gzip"]],
  ["te-unknown", ["Transfer-Encoding: xchunked"]],
  ["te-vertical-tab", ["Transfer-Encoding: \x0bchunked"]],
  ["te-identity", ["Transfer-Encoding: identity"]],
];

/** The same for bodies that are not chunked. */
const LENGTHS: readonly (readonly [name: string, headers: readonly string[]])[] = [
  ["cl-twice", ["Content-Length: 0", "Content-Length: 4"]],
  ["cl-list", ["Content-Length: 4, 4"]],
  ["cl-sign", ["Content-Length: +4"]],
  ["cl-hexadecimal", ["Content-Length: 0x4"]],
  ["cl-empty", ["Content-Length:"]],
  ["cl-over-64-bits", ["Content-Length: 18446744073709551620"]],
  ["cl-blank-before-colon", ["Content-Length : 4"]],
  ["cl-folded", ["X-A: b", " Content-Length: 4"]],
  ["cl-behind-line-feed", ["X-A: b\nContent-Length: 4"]],
  ["cl-behind-carriage-return", ["X-A: b\rContent-Length: 4"]],
  ["header-with-nul", ["X-A: a\0b", "Content-Length: 4"]],
];

/** Chunked bodies that two parsers may split at different places. */
const BODIES: readonly (readonly [name: string, body: string])[] = [
  ["chunk-size-sign", "+4\r\nabcd\r\n0\r\n\r\n"],
  ["chunk-size-0x", "0x4\r\nabcd\r\n0\r\n\r\n"],
  ["chunk-size-blank", " 4\r\nabcd\r\n0\r\n\r\n"],
  ["chunk-size-over-64-bits", "fffffffffffffffff\r\nabcd\r\n0\r\n\r\n"],
  ["chunk-longer-than-said", "2\r\nabcd\r\n0\r\n\r\n"],
  ["chunk-line-feed", "4\nabcd\r\n0\r\n\r\n"],
];

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];

/** More fields than some parsers read (1100), so that those parsers miss the fields after them (CVE-2026-58044). */
const MANY = Array.from({ length: 1100 }, (_, index) => `a${index}: `);

type Bytes = (mark: string) => string;

/**
 * Returns the checks against request smuggling (RFC 9112 §11). Each attack is followed by a request that must not be
 * parsed as part of it.
 *
 * @param priorKnowledge whether the deployment accepts HTTP/2 with prior knowledge.
 */
export function framingChecks(target: Target, priorKnowledge: boolean): Check[] {
  const inChunks = (mark: string): string => chunked(smuggled(target, mark));
  const head = (mark: string, headers: readonly string[], line?: Line) =>
    headOf(target, mark, headers, line);
  const refuse = (name: string, bytes: Bytes) => refusing(target, name, bytes);
  return [
    ...HEADS.map(([name, headers]) =>
      refuse(name, (mark) => request(head(mark, headers), inChunks(mark))),
    ),
    refuse("te-in-http-1.0", (mark) =>
      request(head(mark, [CHUNKED], ["POST", "1.0"]), inChunks(mark)),
    ),
    ...LENGTHS.map(([name, headers]) =>
      refuse(name, (mark) => request(head(mark, headers), "abcd")),
    ),
    ...BODIES.map(([name, body]) => refuse(name, (mark) => request(head(mark, [CHUNKED]), body))),
    refuse("version-9.9", (mark) => request(head(mark, [], ["GET", "9.9"]))),
    {
      ...refuse("http2-preface", () => "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
      skip: priorKnowledge ? "the deployment speaks HTTP/2 by prior knowledge" : undefined,
    },
    refuse("no-http", () => "hello\r\n\r\n"),
    ...bodyChecks(target),
    // The bytes after an upgrade request belong to a protocol to which the connection never switched.
    single("framing/upgrade-h2c-with-body", refused, (mark) =>
      request(
        head(mark, ["Connection: Upgrade", "Upgrade: h2c"], ["GET", "1.1"]),
        smuggled(target, mark),
      ),
    ),
    ...["TRACE", "CONNECT"].map((method) =>
      single(`framing/method-${method}`, refusedOrUnauthorized, (mark) =>
        request(head(mark, [], [method, "1.1"])),
      ),
    ),
    bodyBehind401(target),
  ];
}

type Line = readonly [method: string, version: string];

function headOf(
  target: Target,
  mark: string,
  headers: readonly string[],
  [method, version]: Line = ["POST", "1.1"],
): string[] {
  const start = `${method} ${protectedPath(target, mark)} HTTP/${version}`;
  return [start, `Host: ${target.host}`, authorization(target), ...headers];
}

/** Also tries the attack alone: some parsers refuse it only because of the bytes that follow. */
function refusing(target: Target, name: string, bytes: Bytes): Check {
  return {
    name: `framing/${name}`,
    tries: [
      { what: "alone", bytes },
      { what: "with a request behind it", bytes: (mark) => bytes(mark) + following(target, mark) },
    ],
    expectation: refused,
  };
}

/** A body that looks like a request must arrive as a body, or the request must be refused. */
function bodyChecks(target: Target): Check[] {
  const body = (mark: string): string => smuggled(target, mark);
  const length = (mark: string): string => `Content-Length: ${body(mark).length}`;
  const keep = (name: string, method: string, bytes: Bytes): Check => ({
    name: `framing/${name}`,
    tries: [
      {
        what: method,
        bytes: (mark) => bytes(mark) + following(target, mark),
        methods: [method, "GET"],
      },
    ],
    expectation: intact(method, body),
  });
  return [
    ...METHODS.map((method) =>
      keep(`body-in-chunks-${method}`, method, (mark) =>
        request(headOf(target, mark, [CHUNKED], [method, "1.1"]), chunked(body(mark))),
      ),
    ),
    ...METHODS.map((method) =>
      keep(`body-with-length-${method}`, method, (mark) =>
        request(headOf(target, mark, [length(mark)], [method, "1.1"]), body(mark)),
      ),
    ),
    keep("length-behind-thousand-fields", "POST", (mark) =>
      request(headOf(target, mark, [...MANY, length(mark)]), body(mark)),
    ),
  ];
}

/** The unread body of a refused request must not be parsed as the next request. */
function bodyBehind401(target: Target): Check {
  const bytes = (mark: string): string => {
    const host = `Host: ${target.host}`;
    const path = protectedPath(target, mark, "smuggled");
    const body = request([`GET ${path} HTTP/1.1`, host, authorization(target)]);
    const line = `POST ${protectedPath(target, mark)} HTTP/1.1`;
    const head = [line, host, `Content-Length: ${body.length}`];
    return request(head, body) + following(target, mark);
  };
  const expectation: Expectation = {
    close: false,
    judge(observed, mark) {
      const others = observed.arrived?.filter(({ url }) => !url.endsWith("/following"));
      return refusedOrUnauthorized.judge({ ...observed, arrived: others }, mark);
    },
  };
  const tries = [{ what: "POST", bytes, methods: ["POST", "GET"] }];
  return { name: "framing/body-behind-401", tries, expectation };
}
