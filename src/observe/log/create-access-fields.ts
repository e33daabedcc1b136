import type { AccessFields, LoggedRequest } from "../../core/request/outcome.ts";
import type { ClaimValue } from "../../core/request/identity.ts";
import { maskText, namesSecret } from "./redaction.ts";

/** The maximum length of a logged value, in characters; longer ones are truncated. */
const LONGEST = 512;
/**
 * How much of a value is examined, in characters: enough that truncation cannot hide part of a secret from the mask.
 */
const LOOKED_AT = 2 * LONGEST;

const SOURCE = /^(header|claim):(.+)$/s;

/** Headers that contain secrets although their names do not suggest it. */
const SECRET_HEADERS = new Set(["sec-websocket-protocol", "signature", "x-amz-signature", "dpop"]);

/** `Referer`, and headers such as `X-Original-URI`, in which proxies repeat the URL of the request. */
const URL_HEADER = /^(?:referer|ping-(?:from|to))$|[-_](?:ur[il]|path|referrer)$/;
/** From `?` or `#` on, perhaps encoded. */
const QUERY = /(?:[?#]|%(?:25)?(?:3f|23)).*$/is;

type Value = (request: LoggedRequest) => string | undefined;

/** The source of a field, parsed from `log.fields`: `header:User-Agent`, `claim:tenant`. */
export interface FieldSource {
  readonly kind: "header" | "claim";
  readonly name: string;
}

/** Parses a value of `log.fields`. Returns undefined if its form is invalid. */
export function fieldSource(written: string): FieldSource | undefined {
  const [, kind, name] = SOURCE.exec(written) ?? [];
  if (name === undefined || (kind !== "header" && kind !== "claim")) return undefined;
  return { kind, name };
}

/** Whether a header contains a secret: credentials, cookies, keys, signatures. */
export function isSecretHeader(name: string): boolean {
  return SECRET_HEADERS.has(name.toLowerCase()) || namesSecret(name);
}

/**
 * Prepares the additional fields of access lines.
 *
 * @param fields the sources of the fields, by field name.
 * @param leastStatus the lowest status that gets a line.
 * @returns undefined if there are no fields.
 */
export function createAccessFields(
  fields: Readonly<Record<string, string>>,
  leastStatus: number,
): AccessFields | undefined {
  const values = Object.entries(fields).flatMap(([field, written]): [string, Value][] => {
    const source = fieldSource(written);
    return source === undefined ? [] : [[field, valueOf(source)]];
  });
  if (values.length === 0) return undefined;
  return (request) => {
    if (request.status < leastStatus) return undefined;
    const found: string[] = [];
    for (const [field, value] of values) {
      const text = value(request);
      if (text !== undefined) found.push(field, bounded(text));
    }
    return found;
  };
}

function valueOf({ kind, name }: FieldSource): Value {
  if (kind === "claim") {
    return ({ identity }) => {
      const claim = identity?.claims?.get(name);
      return claim === undefined ? undefined : claimText(claim);
    };
  }
  const header = name.toLowerCase();
  const read: Value = ({ headers }) => {
    const value = headers[header];
    return typeof value === "object" ? value.join(", ") : value;
  };
  // A URL may contain a query, which access lines must not contain.
  return URL_HEADER.test(header) ? (request) => read(request)?.replace(QUERY, "") : read;
}

function claimText(claim: ClaimValue): string {
  return typeof claim === "object" ? claim.join(",") : String(claim);
}

/** Masks secrets and truncates the text. Masks first, so that no part of a token remains. */
function bounded(text: string): string {
  const masked = maskText(text.length > LOOKED_AT ? text.slice(0, LOOKED_AT) : text);
  return masked.length > LONGEST ? `${masked.slice(0, LONGEST)}…` : masked;
}
