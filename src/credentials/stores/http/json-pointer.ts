import { isJsonObject } from "../../../lib/text/strict-json.ts";

const POSITION = /^(?:0|[1-9]\d*)$/;

/**
 * Returns the value that a JSON Pointer (RFC 6901) refers to; undefined if there is none, as for `-` and for positions
 * beyond the end of an array.
 *
 * @param pointer empty for the whole value; otherwise it begins with a slash.
 */
export function pointedAt(value: unknown, pointer: string): unknown {
  const [, ...tokens] = pointer.split("/");
  let at: unknown = value;
  for (const token of tokens) {
    const name = token.replaceAll("~1", "/").replaceAll("~0", "~");
    if (Array.isArray(at)) at = POSITION.test(name) ? at[Number(name)] : undefined;
    else at = isJsonObject(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return at;
}

/** The syntax of a JSON Pointer. */
export const POINTER = /^(?:\/(?:[^~/]|~[01])*)*$/;
