/**
 * Fields about one connection (RFC 9110 §7.6.1). HTTP/2 forbids them (RFC 9113 §8.2.2), except `TE: trailers`, which
 * the proxy writes itself; `HTTP2-Settings` belongs to the upgrade from HTTP/1.1 (RFC 7540 §3.2.1). Node throws if it is
 * made to send one over HTTP/2.
 */
export const CONNECTION_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "proxy-connection",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
  "te",
]);

/** The names of the header fields of a trace (W3C Trace Context), in lower case. */
export const TRACE_HEADERS: readonly string[] = ["traceparent", "tracestate"];

/**
 * Returns the values of a name in a query (`?a=1&b=2`), as sent; empty for a field without `=`. Names are decoded for
 * comparison, because backends decode them.
 */
export function queryValues(query: string, name: string): string[] {
  return fieldsOf(query).flatMap((field) => {
    const at = field.indexOf("=");
    const sent = at === -1 ? field : field.slice(0, at);
    return spells(sent, name) ? [at === -1 ? "" : field.slice(at + 1)] : [];
  });
}

/**
 * @returns the query without the fields of these names, otherwise byte for byte; empty, without `?`, if none is left.
 */
export function withoutQueryFields(query: string, names: readonly string[]): string {
  const fields = fieldsOf(query);
  const kept = fields.filter((field) => {
    const sent = field.split("=", 1)[0] ?? "";
    return !names.some((name) => spells(sent, name));
  });
  if (kept.length === fields.length) return query;
  return kept.length === 0 ? "" : `?${kept.join("&")}`;
}

/** @returns the spellings in which a query holds fields of these names, each once. */
export function queryNames(query: string, names: readonly string[]): string[] {
  const sent = fieldsOf(query).map((field) => field.split("=", 1)[0] ?? "");
  return [...new Set(sent.filter((each) => names.some((name) => spells(each, name))))];
}

function fieldsOf(query: string): string[] {
  return query === "" ? [] : query.slice(1).split("&");
}

/** A character of a name is at most three encoded octets of UTF-8. */
const LONGEST_ENCODING = 9;

/** Whether a name was sent, in any encoding. Looks at the length first: a query may hold thousands of names. */
function spells(sent: string, name: string): boolean {
  if (sent.length < name.length || sent.length > LONGEST_ENCODING * name.length) return false;
  return sent === name || (/[%+]/.test(sent) && decoded(sent) === name);
}

/**
 * Decodes a name. A broken encoding stays, or becomes a replacement character. The exception with which
 * `decodeURIComponent` reports one takes 9 µs.
 */
function decoded(name: string): string {
  const octets = name
    .replaceAll("+", " ")
    .replaceAll(/%([0-9A-Fa-f]{2})/g, (_all, hex: string) =>
      String.fromCharCode(Number.parseInt(hex, 16)),
    );
  return Buffer.from(octets, "latin1").toString();
}

/** Returns all values of a header. @param rawHeaders names and values, alternating. @param name in lower case. */
export function headerValues(rawHeaders: readonly string[], name: string): string[] {
  const values: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const sent = rawHeaders[i] ?? "";
    if (sent.length === name.length && sent.toLowerCase() === name) {
      values.push(rawHeaders[i + 1] ?? "");
    }
  }
  return values;
}

/** Returns the fields that pass a test. @param fields names and values, alternating. */
export function keptFields(
  fields: readonly string[],
  passes: (name: string, value: string) => boolean,
): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (passes(name, value)) kept.push(name, value);
  }
  return kept;
}

/** Returns the fields but those of some names. @param fields names and values, alternating. @param names in lower case. */
export function withoutFields(fields: readonly string[], names: ReadonlySet<string>): string[] {
  return keptFields(fields, (name) => !names.has(name.toLowerCase()));
}

/** @param fields names and values, alternating. */
export function fieldPairs(fields: readonly string[]): [name: string, value: string][] {
  const pairs: [string, string][] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) pairs.push([fields[i] ?? "", fields[i + 1] ?? ""]);
  return pairs;
}

/** A header and the value to compare it with, prepared for many comparisons. */
export interface ComparedHeader {
  /** In lower case. */
  readonly name: string;
  readonly value: string;
  /** A `foldedName`. */
  readonly folded: string;
  readonly elements: readonly string[];
}

/** @param name in lower case. */
export function comparedHeader(name: string, value: string): ComparedHeader {
  return { name, value, folded: foldedName(name), elements: elementsOf(name, value) };
}

/** The fields that a request sent under one name. */
class SentFields {
  /** Names and values, alternating. */
  readonly fields: readonly string[];
  #elements: ReadonlySet<string> | undefined;

  constructor(rawHeaders: readonly string[], folded: string) {
    const isOne = (sent: string) => sent.length === folded.length && foldedName(sent) === folded;
    this.fields = keptFields(rawHeaders, isOne);
  }

  get elements(): ReadonlySet<string> {
    return (this.#elements ??= new Set(
      this.fields.flatMap((text, at) => (at % 2 === 0 ? [] : partsOf(text, /[,;]/))),
    ));
  }
}

/**
 * By header section and folded name. Dozens of routes may compare the same header, and each is asked about each reading of
 * a path: to read a value of 16 KB every time took seconds.
 */
const sentBy = new WeakMap<readonly string[], Map<string, SentFields>>();

function fieldsSent(rawHeaders: readonly string[], folded: string): SentFields {
  let byName = sentBy.get(rawHeaders);
  if (byName === undefined) sentBy.set(rawHeaders, (byName = new Map()));
  let sent = byName.get(folded);
  if (sent === undefined) byName.set(folded, (sent = new SentFields(rawHeaders, folded)));
  return sent;
}

/**
 * Compares a header: true if exactly one field has this name and this value; "otherwise" if another reader could find the value
 * all the same, or if `Connection` ends it here (RFC 9110 §7.6.1). Readers take the first or the last of several fields, or join
 * them; read a list, cookies, quotes or parameters; ignore case; or do not distinguish `_` and `-` in names.
 *
 * @param rawHeaders names and values, alternating; never changed.
 */
export function hasHeader(
  rawHeaders: readonly string[],
  { name, value, folded, elements }: ComparedHeader,
): boolean | "otherwise" {
  const sent = fieldsSent(rawHeaders, folded);
  const { length, 0: first = "", 1: only } = sent.fields;
  if (length === 0) return false;
  const isSent = length === 2 && only === value && first.toLowerCase() === name;
  if (isSent && !fieldsSent(rawHeaders, "connection").elements.has(name)) return true;
  return elements.every((element) => sent.elements.has(element)) && "otherwise";
}

/** The elements of a list, without parameters. Cookies are separated by semicolons. */
function elementsOf(name: string, value: string): string[] {
  if (name === "cookie") return partsOf(value, ";");
  return partsOf(value, ",").map((element) => (element.split(";", 1)[0] ?? "").trim());
}

/** The parts of a value, without quotes and differences in case. Python also strips U+0085, which is no blank to JavaScript. */
function partsOf(value: string, separator: string | RegExp): string[] {
  return value
    .toLowerCase()
    .replaceAll(/["\u0085]/g, "")
    .split(separator)
    .map((part) => part.trim());
}

/**
 * Returns the values of all cookies with this name, unchanged. Only blanks and tabs are around a name (RFC 6265bis §5.6). A browser takes `\u00a0__Host-id` for another name, which any host of
 * the domain may set. A parser that trims more takes it for `__Host-id`.
 */
export function cookieValues(field: string, name: string): string[] {
  const values: string[] = [];
  let equals = -1;
  for (let begin = 0, end = 0; begin <= field.length; begin = end + 1) {
    end = positionOf(";", field, begin);
    if (equals < begin) equals = positionOf("=", field, begin);
    const ofName = Math.min(equals, end);
    if (!isBetween(field, begin, ofName, name)) continue;
    values.push(ofName === end ? "" : field.slice(ofName + 1, end).trim());
  }
  return values;
}

/** Returns where a character is; behind the end if it is nowhere. */
function positionOf(character: string, field: string, from: number): number {
  const at = field.indexOf(character, from);
  return at === -1 ? field.length : at;
}

/** Whether a name, with nothing but blanks and tabs around it, is this part of a field. */
function isBetween(field: string, begin: number, end: number, name: string): boolean {
  let [from, to] = [begin, end];
  while (from < to && isBlank(field.charCodeAt(from))) from += 1;
  while (from < to && isBlank(field.charCodeAt(to - 1))) to -= 1;
  return to - from === name.length && field.startsWith(name, from);
}

function isBlank(code: number): boolean {
  return code === 0x20 || code === 0x09;
}

/** @returns the field without the hidden cookies, otherwise byte for byte; undefined if no cookie is left. */
export function withoutCookies(
  field: string,
  isHidden: (name: string) => boolean,
): string | undefined {
  let left: string | undefined;
  let equals = -1;
  for (let begin = 0, end = 0; begin <= field.length; begin = end + 1) {
    end = positionOf(";", field, begin);
    if (equals < begin) equals = positionOf("=", field, begin);
    // Backends trim more than they should: Python also U+0085.
    const name = field.slice(begin, Math.min(equals, end)).replaceAll("\u0085", "").trim();
    if (isHidden(name)) continue;
    const pair = field.slice(begin, end);
    left = left === undefined ? pair : `${left};${pair}`;
  }
  if (left?.length === field.length) return field;
  left = left?.trim();
  return left === "" ? undefined : left;
}

/**
 * Maps aliases of a field name to one spelling: CGI and its descendants do not distinguish characters other than
 * letters and digits.
 */
export function foldedName(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, "-");
}

/** A response that can send 100 Continue. */
interface Continuable {
  readonly headersSent: boolean;
  writeContinue(): void;
}

/**
 * Sends 100 Continue (RFC 9110 §15.2.1), unless the request has already been refused. A client that gets no 100 sends
 * its body after a while (RFC 9110 §10.1.1).
 */
export function sendContinue(response: Continuable): void {
  if (!response.headersSent) response.writeContinue();
}
