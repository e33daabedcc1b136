import { createHash, randomBytes } from "node:crypto";
import { type ProblemCollector, readPositioned } from "../../core/positioned-file.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";

/** An API key as a store has it, as plain data for other threads. */
export interface ApiKeyRow {
  readonly name: string;
  /** SHA-256 of the whole key, in hexadecimal digits. */
  readonly hash: string;
  readonly subject: string;
  readonly groups: readonly string[];
  readonly scopes: readonly string[];
  /** In milliseconds since the epoch; undefined if it never expires. */
  readonly expires: number | undefined;
  readonly disabled: boolean;
  /** In milliseconds since the epoch; undefined if it is not known. */
  readonly created: number | undefined;
}

const HASH = /^sha256:([0-9a-f]{64})$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** RFC 6749 §3.3. */
const SCOPE = /^[!#-[\]-~]+$/;
/** RFC 3339. */
const TIME = /^(\d{4}-\d\d-\d\d)T[012]\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)$/;
const MEMBERS = ["hash", "subject", "groups", "scopes", "expires", "disabled", "created"];

/** How a key begins: it can be found in leaked code, and told from tokens. */
const API_KEY_PREFIX = "sp_";
const ID_DIGITS = 12;
const SECRET_BYTES = 32;

/** Returns what stands in front of the secret: the id of a name. Keys are looked up by it. */
export function apiKeyId(name: string): string {
  return createHash("sha256").update(name).digest("hex").slice(0, ID_DIGITS);
}

/** Makes a key with 256 random bits, so that a plain hash of it is enough. */
export function newApiKey(name: string): { readonly key: string; readonly hash: string } {
  const key = `${API_KEY_PREFIX}${apiKeyId(name)}_${randomBytes(SECRET_BYTES).toString("base64url")}`;
  return { key, hash: `sha256:${createHash("sha256").update(key).digest("hex")}` };
}

/** Whether a text may be the name of a key. */
export function isApiKeyName(text: string): boolean {
  return NAME.test(text);
}

/** Whether a text is a scope (RFC 6749 §3.3). */
export function isScope(text: string): boolean {
  return SCOPE.test(text);
}

/**
 * Reads a file of API keys.
 *
 * @param file the file name for problems.
 * @throws ConfigError with all problems and their positions, but without the lines.
 */
export function readApiKeys(bytes: Buffer, file: string): readonly ApiKeyRow[] {
  let rows: readonly ApiKeyRow[] = [];
  readPositioned(bytes, file, (value, found) => {
    const members = found.members(value, [], "the file", ["keys"]);
    if (members === undefined) return;
    if (!members.has("keys")) found.add([], "value", "the mapping keys is missing");
    // An empty list of keys is written as nothing.
    const keys = found.members(members.get("keys") ?? {}, ["keys"], '"keys"') ?? new Map();
    rows = Array.from(keys, ([name, row]) => readApiKey(name, row, found));
  });
  return rows;
}

/** Reads the members of one key, and reports what is wrong with them. */
export function readApiKey(name: string, value: unknown, found: ProblemCollector): ApiKeyRow {
  const path = ["keys", name];
  if (!NAME.test(name)) {
    found.add(path, "key", "the name of a key has 1 to 63 letters, digits, . _ and -");
  }
  const members = found.members(value, path, "an API key", MEMBERS) ?? new Map<string, unknown>();
  const at = (member: string): YamlPath => [...path, member];
  return {
    name,
    hash: readHash(members.get("hash"), at("hash"), found),
    subject: readSubject(members.get("subject") ?? name, at("subject"), found),
    groups: found.groups(members.get("groups"), at("groups")),
    scopes: readScopes(members.get("scopes"), at("scopes"), found),
    expires: readTime(members.get("expires"), at("expires"), found),
    disabled: found.disabled(members.get("disabled"), at("disabled")),
    created: readTime(members.get("created"), at("created"), found),
  };
}

function readHash(value: unknown, path: YamlPath, found: ProblemCollector): string {
  const [, digits] = typeof value === "string" ? (HASH.exec(value) ?? []) : [];
  if (digits !== undefined) return digits;
  const message =
    "must be sha256: and 64 hexadecimal digits, as `sallyport api-key create` writes it";
  found.add(path, "value", value === undefined ? "this key has no hash" : `hash ${message}`);
  return "";
}

function readSubject(value: unknown, path: YamlPath, found: ProblemCollector): string {
  if (typeof value === "string" && value !== "" && !/\p{Cc}/u.test(value)) return value;
  found.add(path, "value", "subject must be a text without control characters");
  return "";
}

function readScopes(value: unknown, path: YamlPath, found: ProblemCollector): readonly string[] {
  if (value === undefined) return [];
  const list = Array.isArray(value) ? value : undefined;
  const scopes = list?.filter((each) => typeof each === "string" && SCOPE.test(each)) ?? [];
  if (list === undefined || scopes.length < list.length) {
    found.add(path, "value", "scopes must be a list of scopes (RFC 6749 §3.3)");
  }
  return scopes;
}

function readTime(value: unknown, path: YamlPath, found: ProblemCollector): number | undefined {
  if (value === undefined) return undefined;
  const [text = "", day] = typeof value === "string" ? (TIME.exec(value) ?? []) : [];
  // `Date.parse` takes 30 February for a day in March.
  const isDay = new Date(Date.parse(day ?? "")).getUTCDate() === Number(day?.slice(8));
  const time = isDay ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(time)) {
    found.add(path, "value", `${path.at(-1)} must be a time such as 2027-02-22T10:00:00Z`);
  }
  return time;
}
