import type { IncomingHttpHeaders } from "node:http";
import type { OutgoingResponse } from "../../core/request/http-message.ts";
import type { Permit } from "../../core/request/permit.ts";
import { CONNECTION_FIELDS } from "../../lib/http/connection-fields.ts";
import { lowerCase } from "../../lib/text/by-name.ts";
import type { TargetOrigin } from "../pool/target-origin.ts";
import { keepPrivate } from "./private-answers.ts";
import { backendHost } from "./rewrite.ts";
import { mapAnswerBack } from "./rewrite-response.ts";

/** Fields by name. It inherits no property, so every name can only refer to a field. */
class Fields {
  [name: string]: string | string[] | undefined;
}
Reflect.deleteProperty(Fields.prototype, "constructor");
Object.setPrototypeOf(Fields.prototype, null);

/** Returns fields by lower-case name, repeated ones as a list. @param from the index of the first name. */
export function headersOf(fields: readonly string[], from = 0): IncomingHttpHeaders {
  const headers = new Fields();
  for (let i = from; i + 1 < fields.length; i += 2) {
    const name = lowerCase(fields[i] ?? "");
    const value = fields[i + 1] ?? "";
    const before = headers[name];
    if (before === undefined) headers[name] = value;
    else if (Array.isArray(before)) before.push(value);
    else headers[name] = [before, value];
  }
  return headers;
}

/** Hop-by-hop fields (RFC 9110 §7.6.1); Node frames the message towards the client. */
const DROPPED = new Set([
  ...CONNECTION_FIELDS,
  ...["proxy-authenticate", "proxy-authorization", "proxy-authentication-info", "x-request-id"],
]);

/** Fields about a body, which a 103 does not have. */
const NOT_IN_EARLY_HINTS = new Set(["content-length", "trailer"]);

/**
 * Fields that affect routing, authorization, caching or framing. A recipient that merges trailers into the header
 * section would let them change that afterwards (RFC 9110 §6.5.1).
 */
export const FORBIDDEN_TRAILERS =
  /^(?:age|authorization|authentication-info|cache-control|content-.*|cookie|date|expect|expires|host|if-.*|location|max-forwards|pragma|proxy-.*|range|retry-after|set-cookie|te|trailer|transfer-encoding|vary|warning|www-authenticate)$/i;

/**
 * Creates the header section for the client from the backend's: that of `responseHeaders`, with addresses mapped back and
 * the route's changes applied.
 *
 * @param headers names in lower case; mapped in place.
 * @param origin of the target that answered.
 * @param cors our own CORS fields, for an answer without any.
 * @returns names and values, alternating.
 */
export function clientFields(
  headers: IncomingHttpHeaders,
  permit: Permit,
  status: number,
  origin: TargetOrigin | undefined,
  cors?: readonly string[],
): string[] {
  const { route, request } = permit;
  if (route.mapsAnswers === true && origin !== undefined) {
    mapAnswerBack(headers, permit, [backendHost(permit, origin), origin.authority]);
  }
  const fields = responseHeaders(headers, request.requestId, status);
  if (cors !== undefined) addCors(fields, headers, cors);
  if (route.tokenFrom !== undefined || route.auth === "optional") keepPrivate(fields, permit);
  const { responseHeaders: changes } = route;
  return changes === undefined ? fields : changes.modify(fields, permit);
}

/** Adds our own CORS fields, unless the backend sent some. Several `Vary` fields form one list. */
function addCors(fields: string[], headers: IncomingHttpHeaders, cors: readonly string[]): void {
  if (headers["access-control-allow-origin"] !== undefined) return;
  for (let i = 0; i + 1 < cors.length; i += 2) {
    const [name = "", value = ""] = [cors[i], cors[i + 1]];
    if (name === "Vary" || headers[name.toLowerCase()] === undefined) fields.push(name, value);
  }
}

/**
 * Creates the header section for the client from the backend's, without what ends at this hop.
 *
 * @param headers names in lower case.
 * @returns names and values, alternating.
 */
export function responseHeaders(
  headers: IncomingHttpHeaders,
  requestId: string,
  status: number,
): string[] {
  const passed: string[] = [];
  const named = connectionOptions(headers.connection);
  const disposition = headers["content-disposition"];
  // It must come before `Content-Length`: after that, Node encodes it as UTF-8, although each character is a byte.
  if (disposition !== undefined && !named?.has("content-disposition")) {
    append(passed, "content-disposition", disposition);
  }
  for (const name of Object.keys(headers)) {
    if (DROPPED.has(name) || named?.has(name)) continue;
    // A 204 must not have a length (RFC 9110 §8.6).
    if (status === 204 && name === "content-length") continue;
    if (disposition !== undefined && name === "content-disposition") continue;
    append(passed, name, headers[name]);
  }
  passed.push("X-Request-Id", requestId);
  return passed;
}

/** Creates the fields of a 103 for the client, without those about the connection or the body (RFC 8297 §2). */
export function earlyHintsHeaders(headers: IncomingHttpHeaders): string[] {
  const passed: string[] = [];
  const named = connectionOptions(headers.connection);
  for (const name of Object.keys(headers)) {
    if (DROPPED.has(name) || NOT_IN_EARLY_HINTS.has(name) || named?.has(name)) continue;
    append(passed, name, headers[name]);
  }
  return passed;
}

function append(fields: string[], name: string, value: string | string[] | undefined): void {
  if (typeof value === "string") fields.push(name, value);
  else for (const each of value ?? []) fields.push(name, each);
}

/** Returns the trailers except those that would change how the message is interpreted (RFC 9110 §6.5.1). */
export function responseTrailers(trailers: IncomingHttpHeaders): [string, string][] {
  const passed: [string, string][] = [];
  for (const name of Object.keys(trailers)) {
    if (DROPPED.has(name) || FORBIDDEN_TRAILERS.test(name)) continue;
    const value = trailers[name];
    for (const each of typeof value === "string" ? [value] : (value ?? []))
      passed.push([name, each]);
  }
  return passed;
}

function connectionOptions(value: string | string[] | undefined): ReadonlySet<string> | undefined {
  if (value === undefined || value === "keep-alive" || value === "close") return undefined;
  return new Set(
    [value]
      .flat()
      .join(",")
      .toLowerCase()
      .split(",")
      .map((option) => option.trim()),
  );
}

/** A reason phrase without control characters, which Node refuses to write (RFC 9112 §4). */
const REASON_PHRASE = /^[\t\x20-\x7e\x80-\xff]*$/;

/**
 * Whether Node can write the response and the client will read what the backend meant: a valid status, not both
 * `Trailer` and `Content-Length`, and no transfer coding except `chunked`, which is decoded here.
 */
export function isPassable(
  status: number,
  statusMessage: string,
  headers: IncomingHttpHeaders,
): boolean {
  const coding = headers["transfer-encoding"];
  return (
    status <= 599 &&
    REASON_PHRASE.test(statusMessage) &&
    (headers["trailer"] === undefined || headers["content-length"] === undefined) &&
    (coding === undefined || coding.toLowerCase() === "chunked")
  );
}

/**
 * Whether a response may announce trailers: only a chunked body has them, and Node throws otherwise (RFC 9112
 * §7.1.2).
 */
export function mayEndWithTrailers({ req }: OutgoingResponse, status: number): boolean {
  return req.httpVersion !== "1.0" && req.method !== "HEAD" && status !== 204 && status !== 304;
}
