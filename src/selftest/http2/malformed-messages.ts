import type { Field } from "./http2-frames.ts";

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
