import { GateError } from "../core/errors.ts";
import { isJsonObject, parseStrictJson } from "../lib/strict-json.ts";

/** The largest login body, in bytes. */
export const LOGIN_BODY_BYTES = 16 * 1024;

const utf8 = new TextDecoder("utf-8", { fatal: true });
const JSON_TYPE = /^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i;

/** What somebody who logs in sends. */
export interface LoginRequest {
  readonly username: string;
  readonly password: string;
}

/**
 * @param headers of the request, each name with all of its fields (Node's `headersDistinct`).
 * @throws GateError `login_media_type` for anything but plain JSON in UTF-8, said once (RFC 9110 §8.3, §8.4).
 */
export function requireJson(headers: NodeJS.Dict<string[]>): void {
  const types = headers["content-type"] ?? [];
  const isJson = types.length === 1 && types.every((type) => JSON_TYPE.test(type.trim()));
  if (!isJson || headers["content-encoding"] !== undefined) {
    throw new GateError("login_media_type");
  }
}

/** @throws GateError `login_malformed`; its message names the field, never the value. */
export function parseLoginRequest(body: Buffer): LoginRequest {
  const value = parseBody(body);
  if (!isJsonObject(value)) throw malformed("The request body must be a JSON object");
  return { username: textField(value, "username"), password: textField(value, "password") };
}

function parseBody(body: Buffer): unknown {
  try {
    return parseStrictJson(utf8.decode(body));
  } catch (error) {
    // A JSON error quotes the text, and the text holds a password: the cause stays here.
    const why = error instanceof SyntaxError ? "not_json" : "not_utf8";
    throw new GateError("login_malformed", {
      message: "The request body must be valid JSON without duplicate fields",
      reason: why,
    });
  }
}

function textField(value: Record<string, unknown>, field: "username" | "password"): string {
  const text = Object.hasOwn(value, field) ? value[field] : undefined;
  if (typeof text !== "string") throw malformed(`The field ${field} must be a string`);
  if (text === "") throw malformed(`The field ${field} must not be empty`);
  return text;
}

function malformed(message: string): GateError {
  return new GateError("login_malformed", { message, reason: "malformed" });
}
