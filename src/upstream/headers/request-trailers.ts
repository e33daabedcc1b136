import type { Route } from "../../core/route/route.ts";
import { FORBIDDEN_TRAILERS } from "./incoming-headers.ts";
import { isSendableValue } from "../http1/request-writer.ts";
import { withoutTokens } from "./without-tokens.ts";

const TRAILERS = /(?:^|,)[ \t]*trailers[ \t]*(?:$|,)/i;

/** Whether a client can read trailers, according to its `TE`. @param rawHeaders names and values, alternating. */
export function takesTrailers(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length !== 2 || name.toLowerCase() !== "te") continue;
    if (TRAILERS.test(rawHeaders[i + 1] ?? "")) return true;
  }
  return false;
}

/**
 * Returns a client's trailers without those that would change how its request is interpreted: a backend may merge them
 * into the header section (RFC 9110 §6.5.1).
 *
 * @param fields names and values, alternating: only fields that clients may also send as headers.
 */
export function requestTrailers(
  fields: readonly string[],
  { tokenFrom, requestHeaders }: Route,
): string[] {
  const kept: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const name = fields[i] ?? "";
    const value = fields[i + 1] ?? "";
    if (!FORBIDDEN_TRAILERS.test(name) && isSendableValue(value)) kept.push(name, value);
  }
  const others = requestHeaders === undefined ? kept : requestHeaders.untouched(kept);
  return tokenFrom === undefined ? others : withoutTokens(others, tokenFrom);
}
