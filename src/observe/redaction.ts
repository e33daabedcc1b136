/**
 * The last line of defence: what is logged holds no secrets by construction, and when somebody errs, these masks catch
 * what looks like one.
 */
const REDACTED = "[redacted]";

/** What names of secrets hold, whatever they name: a field of the log, a variable, a parameter of a query, a key. */
const SECRET_NAME =
  /(?<!by|com)pass(?!ed|es|ing|ive|age|through)|pwd|token|secret|auth(?!or(?!iz))|cookie|cred|key|pem|jwt|bearer/i;

/** Names of what is told about a secret, and not the secret: where it lies, how it is called, how long it lasts. */
const ABOUT_A_SECRET =
  /(?:file|path|dir|directory|id|algorithm|lifetime|count|entries|name|type)$/i;

/** How many there are: `keys: 3`. */
const PLURAL_NAME = /(?:keys|tokens|cookies|secrets|credentials)$/i;

const MAX_TEXT = 8192;
const MAX_DEPTH = 6;

/** `name=value`, in a query or elsewhere. */
const NAMED_VALUE = /(?<![\w.-])([\w.-]+)=([^\s&#;,"'<>[\]]+)/g;
const PEM = /-----BEGIN [^-]*-----[^]*?(?:-----END [^-]*-----|$)/g;
const SCHEME = /\bBearer\s+[^\s"',;]+/gi;
const PASSWORD_HASH = /\$(?:argon2(?:id|i|d)|scrypt|2[abxy])\$[^\s"']+/g;
const URL_PASSWORD = /(:\/\/[^\s/:@]*):[^\s/@]+@/g;
/** Whole runs of what a JWT is spelled with, so that each character is looked at once. */
const DOTTED_RUN = /(?<![\w.-])[\w-]+(?:\.[\w-]*)+/g;

/** Whether a name has a word in it that names of secrets have. */
export function mentionsSecret(name: string): boolean {
  return SECRET_NAME.test(name);
}

/** The same, and it is not the name of what is only told about one. */
export function namesSecret(name: string): boolean {
  return mentionsSecret(name) && !ABOUT_A_SECRET.test(name);
}

/**
 * Masks JWTs, PEM blocks, bearer credentials, password hashes, passwords in URLs and `token=` with what follows; cuts what is
 * very long.
 */
export function maskText(text: string): string {
  const cut = text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
  return maskTokens(cut)
    .replace(PEM, REDACTED)
    .replace(SCHEME, `Bearer ${REDACTED}`)
    .replace(PASSWORD_HASH, REDACTED)
    .replace(URL_PASSWORD, `$1:${REDACTED}@`)
    .replace(NAMED_VALUE, (all, name: string) => (namesSecret(name) ? `${name}=${REDACTED}` : all));
}

/** Masks what looks like a JWT: base64url parts joined by dots, beginning with `{"` in base64 (`eyJ`). */
export function maskTokens(text: string): string {
  if (!text.includes("eyJ")) return text;
  return text.replace(DOTTED_RUN, (run) => {
    const start = run.indexOf("eyJ");
    const looksLikeToken = start >= 0 && run.includes(".", start);
    return looksLikeToken ? run.slice(0, start) + REDACTED : run;
  });
}

/** A copy of log fields, fit for JSON, with secrets masked. Stacks of errors are kept when `stacks` is set. */
export function redactFields(
  fields: Readonly<Record<string, unknown>>,
  stacks = false,
): Record<string, unknown> {
  return redactObject(fields, { stacks, depth: 0 });
}

interface Place {
  readonly stacks: boolean;
  readonly depth: number;
}

function redactObject(object: object, place: Place): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(object).map(([name, value]) => [name, redactNamed(name, value, place)]),
  );
}

function redactNamed(name: string, value: unknown, place: Place): unknown {
  const open =
    value === undefined ||
    value === null ||
    typeof value === "boolean" ||
    !namesSecret(name) ||
    (typeof value === "number" && PLURAL_NAME.test(name));
  return open ? redactValue(value, place) : REDACTED;
}

function redactValue(value: unknown, place: Place): unknown {
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

function redactError(error: Error, place: Place): Record<string, unknown> {
  if (place.depth >= MAX_DEPTH) return { message: "[too deep]" };
  const { code } = error as NodeJS.ErrnoException;
  return {
    message: maskText(error.message || error.name),
    ...(code === undefined ? {} : { code }),
    ...(place.stacks && error.stack !== undefined ? { stack: maskText(error.stack) } : {}),
    ...(error.cause === undefined ? {} : { cause: redactValue(error.cause, place) }),
  };
}
