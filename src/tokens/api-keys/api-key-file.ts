import { createHash, randomBytes } from "node:crypto";
import { type ProblemCollector, readPositioned } from "../../core/positioned-file.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";

/** An API key as a file has it, as plain data for other threads. */
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
}

const HASH = /^sha256:([0-9a-f]{64})$/;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/;
/** RFC 6749 §3.3. */
const SCOPE = /^[!#-[\]-~]+$/;
/** RFC 3339, in UTC. */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,3})?Z$/;
const MEMBERS = ["hash", "subject", "groups", "scopes", "expires", "disabled"];

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
    rows = Array.from(keys, ([name, row]) => readRow(name, row, found));
  });
  return rows;
}

function readRow(name: string, value: unknown, found: ProblemCollector): ApiKeyRow {
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
    expires: readExpiry(members.get("expires"), at("expires"), found),
    disabled: found.disabled(members.get("disabled"), at("disabled")),
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

function readExpiry(value: unknown, path: YamlPath, found: ProblemCollector): number | undefined {
  if (value === undefined) return undefined;
  const text = typeof value === "string" && TIME.test(value) ? value : "";
  const time = Date.parse(text);
  // `Date.parse` takes 30 February for a day in March.
  if (Number.isNaN(time) || new Date(time).toISOString().slice(0, 10) !== text.slice(0, 10)) {
    found.add(path, "value", "expires must be a time such as 2027-02-22T10:00:00Z");
  }
  return time;
}
