import type { AccessFields, LoggedRequest } from "../../core/request/access-fields.ts";
import type { ClaimValue } from "../../core/request/identity.ts";
import { maskText, namesSecret } from "./redaction.ts";

/** The longest value that is logged, in characters; the rest is cut. */
const LONGEST = 512;
/** How much of a value is looked at, in characters: enough that no piece of a secret escapes its mask. */
const LOOKED_AT = 2 * LONGEST;

const SOURCE = /^(header|claim):(.+)$/s;

/** Headers that carry secrets and whose names do not say so. */
const SECRET_HEADERS = new Set(["sec-websocket-protocol", "signature", "x-amz-signature", "dpop"]);

type Value = (request: LoggedRequest) => string | undefined;

/** Where the value of a field comes from, as `log.fields` says it: `header:User-Agent`, `claim:tenant`. */
export interface FieldSource {
  readonly kind: "header" | "claim";
  readonly name: string;
}

/** Reads a value of `log.fields`; undefined if it has another form. */
export function fieldSource(written: string): FieldSource | undefined {
  const [, kind, name] = SOURCE.exec(written) ?? [];
  if (name === undefined || (kind !== "header" && kind !== "claim")) return undefined;
  return { kind, name };
}

/** Whether a header carries a secret: credentials, cookies, keys, signatures. */
export function isSecretHeader(name: string): boolean {
  return SECRET_HEADERS.has(name.toLowerCase()) || namesSecret(name);
}

/**
 * Prepares the additional fields of access lines.
 *
 * @param fields the sources by name of the field.
 * @param leastStatus the lowest status that gets a line.
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
  // Its query may hold what the path of an access line leaves out.
  return header === "referer" ? (request) => read(request)?.replace(/[?#].*$/s, "") : read;
}

function claimText(claim: ClaimValue): string {
  return typeof claim === "object" ? claim.join(",") : String(claim);
}

/** Masks before it cuts, so that no piece of a token remains. */
function bounded(text: string): string {
  const masked = maskText(text.length > LOOKED_AT ? text.slice(0, LOOKED_AT) : text);
  return masked.length > LONGEST ? `${masked.slice(0, LONGEST)}…` : masked;
}
