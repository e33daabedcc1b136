/**
 * Characters that JSON does not escape but terminals or line readers act on: DEL and C1 control characters, U+2028 and
 * U+2029 (line ends to some readers), and bidirectional marks (Trojan Source, CVE-2021-42574).
 */
const UNPRINTABLE = /[\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Escapes unprintable characters inside a JSON text without changing its value. */
export function escapeUnprintable(json: string): string {
  return json.replace(
    UNPRINTABLE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Characters that need no escape in a JSON string or on a terminal: printable ASCII without `"` and `\`. */
const PLAIN = /^[ !#-[\]-~]*$/;

/** Returns a JSON string with its quotes. Lone surrogates become escapes. */
export function quoted(text: string): string {
  return PLAIN.test(text) ? `"${text}"` : escapeUnprintable(JSON.stringify(text));
}

/** The replacement for a secret. Masks are the last line of defence: log calls pass no secrets by design. */
const REDACTED = "[redacted]";

/** Words in the names of secrets, such as log fields, variables, query parameters and keys. */
const SECRET_NAME =
  /(?<!by|com)pass(?!ed|es|ing|ive|age|through)|pwd|token|secret|auth(?!or(?!iz))|cookie|cred|key|pem|jwt|bearer/i;

/** Endings of names of values that describe a secret but are not one: its file, name, lifetime. */
const ABOUT_A_SECRET =
  /(?:file|path|dir|directory|id|algorithm|lifetime|count|entries|name|type)$/i;

/** Names of counts: `keys: 3`. */
const PLURAL_NAME = /(?:keys|tokens|cookies|secrets|credentials)$/i;

const MAX_TEXT = 8192;
const MAX_DEPTH = 6;

/** `name=value`, in a query or elsewhere. */
const NAMED_VALUE = /(?<![\w.-])([\w.-]+)=([^\s&#;,"'<>[\]]+)/g;
const PEM = /-----BEGIN [^-]*-----[^]*?(?:-----END [^-]*-----|$)/g;
const SCHEME = /\bBearer\s+[^\s"',;]+/gi;
/** Password hashes: PHC strings and the formats of crypt(5) begin with the name of their algorithm. */
export const PASSWORD_HASH = /\$[A-Za-z0-9-]{1,32}\$[^\s"']{8,}/g;
const URL_PASSWORD = /(:\/\/[^\s/:@]*):[^\s/@]+@/g;
/** A maximal run of the characters of a JWT, so that each character is visited once. */
const DOTTED_RUN = /(?<![\w.-])[\w-]+(?:\.[\w-]*)+/g;

/** Whether a name contains a word for secrets. */
export function mentionsSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** Whether a name is that of a secret, not of a value that only describes one. */
export function namesSecret(name: string): boolean {
  return mentionsSecret(name) && !ABOUT_A_SECRET.test(name);
}

/** Our own API keys. */
const API_KEY = /sp_[0-9a-f]{12}_[\w-]{43}/g;

/**
 * Masks JWTs, API keys, PEM blocks, bearer credentials, password hashes, passwords in URLs, and the values of `token=` and
 * similar names. Truncates texts of more than 8,192 characters.
 */
export function maskText(text: string): string {
  const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  return maskTokens(cut)
    .replace(PEM, REDACTED)
    .replace(API_KEY, REDACTED)
    .replace(SCHEME, `Bearer ${REDACTED}`)
    .replace(PASSWORD_HASH, REDACTED)
    .replace(URL_PASSWORD, `$1:${REDACTED}@`)
    .replace(NAMED_VALUE, (all, name: string) => (namesSecret(name) ? `${name}=${REDACTED}` : all));
}

/**
 * Masks anything that looks like a JWT: base64url parts joined by dots, of which one contains `{"` in base64 (`eyJ`).
 */
export function maskTokens(text: string): string {
  if (!text.includes("eyJ")) return text;
  return text.replace(DOTTED_RUN, (run) => {
    const start = run.indexOf("eyJ");
    const looksLikeToken = start >= 0 && run.includes(".", start);
    return looksLikeToken ? run.slice(0, start) + REDACTED : run;
  });
}

/**
 * Returns a copy of log fields that can be written as JSON, with secrets masked. Includes the stacks of errors if
 * `stacks` is set.
 */
export function redactFields(
  fields: Readonly<Record<string, unknown>>,
  stacks = false,
): Record<string, unknown> {
  return redactObject(fields, { stacks, depth: 0 });
}

interface RedactionState {
  readonly stacks: boolean;
  readonly depth: number;
}

function redactObject(object: object, place: RedactionState): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, redactNamed(name, value, place)]),
  );
}

function redactNamed(name: string, value: unknown, place: RedactionState): unknown {
  const open =
    value === undefined ||
    value === null ||
    typeof value === "boolean" ||
    !namesSecret(name) ||
    (typeof value === "number" && PLURAL_NAME.test(name));
  return open ? redactValue(value, place) : REDACTED;
}

function redactValue(value: unknown, place: RedactionState): unknown {
  if (typeof value === "string") return maskText(value);
  if (typeof value === "bigint") return String(value);
  if (typeof value === "function" || typeof value === "symbol") return undefined;
  if (typeof value !== "object" || value === null) return value;
  if (place.depth >= MAX_DEPTH) return "[too deep]";
  const inside = { ...place, depth: place.depth + 1 };
  if (value instanceof Error) return redactError(value, inside);
  if (value instanceof Date || value instanceof URL) return maskText(String(value));
  if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
  if (Array.isArray(value)) return value.map((entry: unknown) => redactValue(entry, inside));
  return redactObject(value, inside);
}

function redactError(error: Error, place: RedactionState): Record<string, unknown> {
  if (place.depth >= MAX_DEPTH) return { message: "[too deep]" };
  const { code } = error as NodeJS.ErrnoException;
  return {
    message: maskText(error.message || error.name),
    ...(code === undefined ? {} : { code }),
    ...(place.stacks && error.stack !== undefined ? { stack: maskText(error.stack) } : {}),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, place) }),
  };
}
