import { METHODS } from "node:http";
import type { Field } from "../../tools/selftest/http2/http2-frames.ts";
import type { Fields } from "./head.ts";
import { HOST, type ReadRequest } from "./requests.ts";

export interface StreamHead {
  readonly request: ReadRequest;
  /** The `content-length`, if any. */
  readonly length: number | undefined;
  /** Whether each field is valid in a request. An invalid one is omitted, but the request may also be refused. */
  readonly sound: boolean;
}

const NAME = /^[!#$%&'*+\-.^_`|~0-9a-z]+$/;
/** A value (RFC 9113 §8.2.1), without whitespace at either end. */
const VALUE = /^(?:[!-~\u0080-\u00ff](?:[\t -~\u0080-\u00ff]*[!-~\u0080-\u00ff])?)?$/;
/** The characters of an authority (RFC 3986 §3.2). */
const AUTHORITY = /^[A-Za-z0-9\-._~!$&'()*+,;=:@%[\]]*$/;
const PSEUDO = new Set([":method", ":scheme", ":authority", ":path", ":protocol"]);
const CONNECTION = new Set([
  ...["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"],
]);
const KNOWN = new Set(METHODS);

/**
 * Reads the head of a request strictly according to RFC 9113 §8.3; undefined if it is malformed, or not a request that can be
 * passed on.
 */
export function readStreamHead(given: readonly Field[]): StreamHead | undefined {
  const first = given.findIndex(([name]) => !name.startsWith(":"));
  const behind = first === -1 ? given.length : first;
  const pseudo = new Map(given.slice(0, behind));
  const fields = readRegular(given.slice(behind));
  if (fields === undefined || pseudo.size !== behind) return undefined;
  for (const [name, value] of pseudo) if (!PSEUDO.has(name) || value === "") return undefined;
  const [method = "", path = "", scheme = ""] = [":method", ":path", ":scheme"].map((name) =>
    pseudo.get(name),
  );
  const host = hostOf(pseudo.get(":authority"), valuesIn(fields, "host"));
  const lengths = valuesIn(fields, "content-length");
  const isRequest = KNOWN.has(method) && method !== "CONNECT" && !pseudo.has(":protocol");
  if (!isRequest || !/^[!-~]+$/.test(path) || !/^[a-z][a-z0-9+\-.]*$/i.test(scheme)) {
    return undefined;
  }
  if (host === undefined || lengths.length > 1 || !lengths.every((each) => /^\d{1,15}$/.test(each)))
    return undefined;
  const length = lengths[0] === undefined ? undefined : Number(lengths[0]);
  const sound = path.startsWith("/") && behind + fields.length === given.length;
  const bare = { method, target: path, version: "1.1", trailers: [], switches: false };
  return {
    request: { ...bare, fields: asOne(fields, host), body: undefined },
    length,
    sound,
  };
}

/** Reads trailers; undefined if they are malformed. */
export function readTrailerFields(given: readonly Field[]): Fields | undefined {
  return readRegular(given);
}

/**
 * Reads regular fields. A name with capitals, a connection-specific name, or a pseudo-header field makes the section
 * malformed. An invalid field is omitted, like in nghttp2, and the others are passed on without it.
 */
function readRegular(given: readonly Field[]): Field[] | undefined {
  const fields: Field[] = [];
  for (const [name, value] of given) {
    if (name.startsWith(":") || /[A-Z]/.test(name)) return undefined;
    if (!NAME.test(name) || !VALUE.test(value)) continue;
    if (name === "host" && !AUTHORITY.test(value)) continue;
    if (CONNECTION.has(name)) return undefined;
    if (name === "te" && value.toLowerCase() !== "trailers") return undefined;
    fields.push([name, value]);
  }
  return fields;
}

/** Returns the host from either field; undefined if there is none, or if there are two. */
function hostOf(authority: string | undefined, hosts: readonly string[]): string | undefined {
  const [host, another] = hosts;
  const named = authority ?? host;
  const differs = host !== undefined && host.toLowerCase() !== named?.toLowerCase();
  const match = HOST.exec(named ?? "");
  if (another !== undefined || differs || match === null || Number(match[1] ?? 0) > 65_535) {
    return undefined;
  }
  return named;
}

/** Joins cookies (RFC 9113 §8.2.3), and appends them and one host to the other fields. */
function asOne(fields: readonly Field[], host: string): Field[] {
  const all = valuesIn(fields, "cookie");
  const first = all.findIndex((each) => each !== "");
  const cookies = first === -1 ? [] : all.slice(first);
  const others = fields.filter(([name]) => name !== "cookie" && name !== "host");
  const cookie: Field[] = cookies.length === 0 ? [] : [["cookie", cookies.join("; ").trim()]];
  return [...others, ...cookie, ["host", host]];
}

function valuesIn(fields: readonly Field[], name: string): string[] {
  return fields.filter(([each]) => each === name).map(([, value]) => value);
}
