import type { IncomingHttpHeaders } from "node:http";
import { mayTrail } from "./trailer-fields.ts";

/** Meant for us alone (RFC 9110 §7.6.1); the framing towards the client is Node's. */
const DROPPED = new Set([
  ...["connection", "keep-alive", "proxy-connection", "proxy-authenticate", "proxy-authorization"],
  ...["proxy-authentication-info", "te", "transfer-encoding", "upgrade", "x-request-id"],
]);

/**
 * The header section that the client gets from the backend's.
 *
 * @param headers names in lower case, as undici reads them.
 * @returns name and value alternating.
 */
export function incomingHeaders(
  headers: IncomingHttpHeaders,
  requestId: string,
  status: number,
): string[] {
  const passed: string[] = [];
  const named = connectionOptions(headers.connection);
  for (const name of Object.keys(headers)) {
    if (DROPPED.has(name) || named?.has(name)) continue;
    // RFC 9110 §8.6: a 204 has none.
    if (status === 204 && name === "content-length") continue;
    const value = headers[name];
    if (typeof value === "string") passed.push(name, value);
    else for (const each of value ?? []) passed.push(name, each);
  }
  passed.push("X-Request-Id", requestId);
  return passed;
}

/** Trailers, without those that would change how the message is read (RFC 9110 §6.5.1). */
export function incomingTrailers(trailers: IncomingHttpHeaders): [string, string][] {
  const passed: [string, string][] = [];
  for (const name of Object.keys(trailers)) {
    if (DROPPED.has(name) || !mayTrail(name)) continue;
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
