import { type Fields, readFields } from "./head.ts";

/** Fields that must not be trailers (RFC 9110 §6.5.1). */
const FRAMING = /^(?:content-length|transfer-encoding)$/i;

export interface ChunkedBody {
  readonly body: string;
  readonly trailers: Fields;
  readonly end: number;
}

const SIZE_LINE =
  /^([0-9A-Fa-f]{1,8})(?:;[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?:=(?:[!#$%&'*+\-.^_`|~0-9A-Za-z]+|"[^"\\]*"))?)*$/;

/** Reads a chunked body strictly according to RFC 9112 §7.1. */
export function readChunks(text: string, start: number): ChunkedBody | "incomplete" | "unclear" {
  let body = "";
  let at = start;
  for (;;) {
    const lineEnd = text.indexOf("\r\n", at);
    if (lineEnd === -1) return "incomplete";
    const size = SIZE_LINE.exec(text.slice(at, lineEnd))?.[1];
    if (size === undefined) return "unclear";
    const length = Number.parseInt(size, 16);
    at = lineEnd + 2;
    if (length === 0) return readTrailers(text, at, body);
    if (text.length < at + length + 2) return "incomplete";
    if (text.slice(at + length, at + length + 2) !== "\r\n") return "unclear";
    body += text.slice(at, at + length);
    at += length + 2;
  }
}

function readTrailers(
  text: string,
  start: number,
  body: string,
): ChunkedBody | "incomplete" | "unclear" {
  if (text.startsWith("\r\n", start)) return { body, trailers: [], end: start + 2 };
  const end = text.indexOf("\r\n\r\n", start);
  if (end === -1) return "incomplete";
  const trailers = readFields(text.slice(start, end).split("\r\n"));
  if (trailers === undefined || trailers.some(([name]) => FRAMING.test(name))) return "unclear";
  return { body, trailers, end: end + 4 };
}
