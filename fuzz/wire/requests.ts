import { METHODS } from "node:http";
import { readChunks } from "./chunks.ts";
import { connectionOptions, type Fields, type Head, readHead, valuesOf } from "./head.ts";

/** One request as read by a parser that follows RFC 9112 strictly. */
export interface ReadRequest {
  readonly method: string;
  readonly target: string;
  readonly version: string;
  readonly fields: Fields;
  /** Its bytes in Latin-1; undefined while it is incomplete, or if it cannot be read. */
  readonly body: string | undefined;
  readonly trailers: Fields;
  /** Whether it asks for another protocol: if that is granted, the following data is not HTTP. */
  readonly switches: boolean;
}

/**
 * Why reading stopped: everything was read (`end`), more data is needed (`incomplete`), the bytes are ambiguous or invalid
 * (`unclear`), the last request asked for another protocol (`switched`), or for the end of the connection (`closed`).
 */
type Stop = "end" | "incomplete" | "unclear" | "switched" | "closed";

export interface Reading {
  /** Complete requests, in order. */
  readonly requests: readonly ReadRequest[];
  /** A request with an unambiguous head and an incomplete body. */
  readonly begun: ReadRequest | undefined;
  readonly stop: Stop;
  /** The data after the complete requests. */
  readonly rest: string;
}

/** A request line; RFC 9112 §3 lets a recipient accept several spaces between the parts. */
const REQUEST_LINE = /^([!#$%&'*+\-.^_`|~0-9A-Za-z]+) +([!-~]+) +HTTP\/(1\.[01])$/;
/** Origin form, absolute form with HTTP, or the asterisk (RFC 9112 §3.2); the path itself is not checked. */
const TARGET = /^(?:\/.*|\*|https?:\/\/[A-Za-z0-9.-]+(?::\d+)?(?:[/?].*)?)$/i;
/** The target of CONNECT. */
const AUTHORITY = /^[A-Za-z0-9.-]+:\d+$/;
/** The methods that Node's parser knows: it closes the connection for any other. */
const KNOWN = new Set(METHODS);
export const HOST =
  /^(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::(\d{1,5}))?$/;

/** Reads the requests in the bytes of one connection. @param text in Latin-1. */
export function readRequests(text: string): Reading {
  const requests: ReadRequest[] = [];
  let at = 0;
  const ended = (stop: Stop, begun?: ReadRequest): Reading => ({
    requests,
    begun,
    stop,
    rest: text.slice(at),
  });
  for (;;) {
    const start = skipEmptyLines(text, at);
    if (start === text.length) return ended("end");
    const head = readHead(text, start);
    if (typeof head === "string") return ended(head);
    const one = readBody(text, head);
    if (one === "unclear") return ended(one);
    const { request } = one;
    if (request.body === undefined) return ended(one.stop, request);
    requests.push(request);
    at = one.end;
    if (request.switches) return ended("switched");
    if (isLast(request)) return ended("closed");
  }
}

/** Skips empty lines before a request line (RFC 9112 §2.2). */
function skipEmptyLines(text: string, from: number): number {
  let at = from;
  while (text[at] === "\r" || text[at] === "\n") at += 1;
  return at;
}

interface OneRequest {
  readonly request: ReadRequest;
  readonly end: number;
  readonly stop: "incomplete" | "unclear";
}

function readBody(text: string, { startLine, fields, end }: Head): OneRequest | "unclear" {
  const [, method = "", target = "", version = ""] = REQUEST_LINE.exec(startLine) ?? [];
  if (!KNOWN.has(method)) return "unclear";
  const form = method === "CONNECT" ? AUTHORITY : TARGET;
  if (version === "" || !form.test(target) || !hasOneHost(fields, version)) return "unclear";
  const codings = valuesOf(fields, "transfer-encoding");
  const lengths = valuesOf(fields, "content-length");
  const switches = method === "CONNECT" || asksToSwitch(fields);
  const bare = { method, target, version, fields, trailers: [], switches };
  if (codings.length > 0) {
    const chunked = codings.length === 1 && codings[0]?.toLowerCase() === "chunked";
    if (!chunked || lengths.length > 0 || version === "1.0") return "unclear";
    const read = readChunks(text, end);
    if (typeof read === "string") return { request: { ...bare, body: undefined }, end, stop: read };
    const { body, trailers } = read;
    return { request: { ...bare, body, trailers }, end: read.end, stop: "incomplete" };
  }
  const [length = "0"] = lengths;
  if (lengths.length > 1 || !/^\d{1,15}$/.test(length)) return "unclear";
  const bodyEnd = end + Number(length);
  const body = bodyEnd <= text.length ? text.slice(end, bodyEnd) : undefined;
  return { request: { ...bare, body }, end: bodyEnd, stop: "incomplete" };
}

/** Whether there is exactly one valid Host (RFC 9112 §3.2); HTTP/1.0 may have none. */
function hasOneHost(fields: Fields, version: string): boolean {
  const [host, another] = valuesOf(fields, "host");
  if (host === undefined) return version === "1.0";
  const match = HOST.exec(host);
  return another === undefined && match !== null && Number(match[1] ?? 0) < 65_536;
}

function asksToSwitch(fields: Fields): boolean {
  const wanted = valuesOf(fields, "upgrade").some((value) => value !== "");
  return wanted && connectionOptions(fields).includes("upgrade");
}

/** Whether the connection ends with this request (RFC 9112 §9.3). */
function isLast({ fields, version }: ReadRequest): boolean {
  const options = connectionOptions(fields);
  return options.includes("close") || (version === "1.0" && !options.includes("keep-alive"));
}
