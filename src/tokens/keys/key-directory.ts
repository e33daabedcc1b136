import {
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  hash,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from "node:crypto";
import { chmod, chown, link, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ConfigError, type ConfigProblem } from "../../core/config-problem.ts";
import {
  describePermissions,
  isExposed,
  isOpenToAll,
  writeNewFile,
} from "../../lib/files/private-file.ts";
import { readRegularFile } from "../../lib/files/regular-file.ts";
import { algorithmOf, type SigningAlgorithm, weaknessOf } from "./algorithms.ts";
import { systemCode } from "../../lib/text/error-code.ts";
import { jsonObjectIn } from "../../lib/text/strict-json.ts";
import type { NamedKey } from "./key-making.ts";

/** One key as read from a file. */
interface KeyMaterial {
  readonly key: KeyObject;
  /** The `alg` of a JWK (RFC 7517 §4.4). */
  readonly algorithm?: string | undefined;
  /** The `iat` of a JWK: when the key was created, in seconds since the epoch. */
  readonly issuedAt?: number | undefined;
  /** The `nbf` of a JWK: when the key starts to sign, in seconds since the epoch. */
  readonly notBefore?: number | undefined;
  /** The `exp` of a JWK: when the key stops verifying, in seconds since the epoch. */
  readonly expires?: number | undefined;
}

/** Why a text is not a key. The message never quotes the text. */
export class KeyFormatError extends Error {}

const PEM_LABEL = /-----BEGIN ([A-Z0-9 ]+)-----/g;
const PEM_READERS = {
  "PRIVATE KEY": createPrivateKey,
  "EC PRIVATE KEY": createPrivateKey,
  "RSA PRIVATE KEY": createPrivateKey,
  "PUBLIC KEY": createPublicKey,
  "RSA PUBLIC KEY": createPublicKey,
} as const;

/** Parses a file with one key: PEM (PKCS#8, SEC1, PKCS#1, SPKI) or JWK. Throws `KeyFormatError`. */
export function readKey(text: string): KeyMaterial {
  if (text.trimStart().startsWith("{")) return readJwk(text);
  if (text.includes("-----BEGIN ")) return readPem(text);
  throw new KeyFormatError("neither a PEM nor a JWK key");
}

function readPem(text: string): KeyMaterial {
  // `openssl ecparam -genkey` writes the curve's parameters first.
  const labels = [...text.matchAll(PEM_LABEL)]
    .map((match) => match[1] ?? "")
    .filter((label) => label !== "EC PARAMETERS");
  const [label = "", another] = labels;
  if (another !== undefined) throw new KeyFormatError("more than one PEM block");
  const reader = Object.entries(PEM_READERS).find(([name]) => name === label)?.[1];
  if (reader === undefined) throw new KeyFormatError("the PEM block is not an unencrypted key");
  return { key: imported(() => reader(text)) };
}

function readJwk(text: string): KeyMaterial {
  const jwk = jsonObjectIn(text);
  if (jwk === undefined) throw new KeyFormatError("not a valid JSON object");
  if ("keys" in jwk) throw new KeyFormatError("a set of keys; each file must hold one key");
  const { alg, use } = jwk;
  if (alg !== undefined && typeof alg !== "string")
    throw new KeyFormatError('"alg" is not a string');
  if (use !== undefined && use !== "sig") throw new KeyFormatError('"use" is not "sig"');
  return {
    key: keyFromJwk(jwk),
    algorithm: alg,
    issuedAt: dateIn(jwk, "iat"),
    notBefore: dateIn(jwk, "nbf"),
    expires: dateIn(jwk, "exp"),
  };
}

/** Returns a NumericDate (RFC 7519 §2). JSON allows `1e400`, which parses as infinity. */
function dateIn(jwk: Record<string, unknown>, name: string): number | undefined {
  const value = jwk[name];
  if (value === undefined) return undefined;
  if (typeof value === "number" && Number.isFinite(value)) return value;
  throw new KeyFormatError(`"${name}" is not a number`);
}

/** Returns the key that a JWK describes: secret (`oct`), private (with `d`) or public. Throws `KeyFormatError`. */
export function keyFromJwk(jwk: Record<string, unknown>): KeyObject {
  if (jwk["kty"] === "oct") {
    const { k } = jwk;
    const secret = Buffer.from(typeof k === "string" ? k : "", "base64url");
    if (secret.length === 0 || secret.toString("base64url") !== k) {
      throw new KeyFormatError('"k" is not base64url text');
    }
    return createSecretKey(secret);
  }
  if (!("d" in jwk)) return imported(() => createPublicKey({ key: jwk, format: "jwk" }));
  const key = imported(() => createPrivateKey({ key: jwk, format: "jwk" }));
  if (!verifiesItself(key)) throw new KeyFormatError("its private part is that of another key");
  return key;
}

/**
 * Signs and verifies a text. Node 24 accepts a JWK whose private part belongs to another public key, so that nobody
 * could verify its signatures.
 */
function verifiesItself(key: KeyObject): boolean {
  const text = Buffer.from("a key verifies what it signs");
  const digest = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  try {
    return verify(digest, text, createPublicKey(key), sign(digest, text, key));
  } catch {
    // The key cannot sign because of its type or size: `weaknessOf` reports it.
    return true;
  }
}

function imported(read: () => KeyObject): KeyObject {
  try {
    return read();
  } catch {
    // Node's message may quote members of the JWK.
    throw new KeyFormatError("not a key that can be read");
  }
}

/** A new key, and the members that determine its state, in seconds since the epoch. */
interface NewKey extends NamedKey {
  readonly alg: SigningAlgorithm;
  /** When it was created. */
  readonly iat: number;
  /** When it starts to sign. */
  readonly nbf: number;
}

/**
 * Writes a key to a new file, as a JWK with mode 0600. Readers of the directory see either the whole file or no file.
 * Rejects with EEXIST if the file exists.
 */
export async function writeNewKey(file: string, { key, ...members }: NewKey): Promise<void> {
  const jwk = { ...key.export({ format: "jwk" }), use: "sig", ...members };
  const draft = await writeDraft(file, jwk);
  try {
    // Unlike a rename, this never replaces a file.
    await link(draft, file);
  } finally {
    await rm(draft);
  }
}

/**
 * Changes when the key in a file expires. A PEM file becomes a JWK, since PEM has no field for an expiry. Keeps owner
 * and mode, but removes the permissions of others.
 *
 * @param exp seconds since the epoch.
 * @returns the file that holds the key now.
 * @throws Error if it holds no key any more.
 */
export async function writeExpiry(found: FoundKey, exp: number): Promise<string> {
  const { file, key, algorithm, madeAt } = found;
  const text = await readFile(file, "utf8");
  const jwk = jsonObjectIn(text);
  // Somebody is writing it at this moment.
  if (jwk === undefined && !text.includes("-----BEGIN"))
    throw new Error(`${file}: holds no key now`);
  const target = jwk === undefined ? `${file.replace(/\.pem$/, "")}.jwk` : file;
  const { mode, uid, gid } = await stat(file);
  // Without an `iat`, the key would count as created now.
  const known = { iat: Math.floor(madeAt / 1000), alg: algorithm };
  const members = jwk ?? key.export({ format: "jwk" });
  const draft = await writeDraft(target, { ...known, ...members, exp });
  try {
    const own = await stat(draft);
    if (own.uid !== uid || own.gid !== gid) await chown(draft, uid, gid);
    await chmod(draft, mode & 0o770);
    if (target === file) {
      await rename(draft, file);
    } else {
      await link(draft, target);
      await rm(file);
    }
  } finally {
    await rm(draft, { force: true });
  }
  return target;
}

/** Writes a draft beside the file, under a name that readers of the directory ignore. */
async function writeDraft(file: string, jwk: object): Promise<string> {
  const draft = join(dirname(file), `.${basename(file)}.${randomBytes(6).toString("hex")}`);
  await writeNewFile(draft, `${JSON.stringify(jwk, undefined, 2)}\n`);
  return draft;
}

/** A usable key of a directory, with its algorithm. Times are milliseconds since the epoch. */
export interface FoundKey {
  readonly file: string;
  readonly key: KeyObject;
  readonly algorithm: SigningAlgorithm;
  readonly madeAt: number;
  /** 0 if it may sign at once. */
  readonly signsFrom: number;
  /** Infinity if it does not expire. */
  readonly verifiesUntil: number;
  /** Whether other users can read the private key or secret. */
  readonly exposed: boolean;
}

/** The content of a directory: its files, or why they could not be read. */
export interface KeyFiles {
  readonly directory: string;
  readonly files: readonly KeyFile[];
  /** Whether every user of this machine can add a key. */
  readonly openToAll: boolean;
  /** Equal fingerprints mean equal content. */
  readonly fingerprint: string;
  /** When the reading began, in milliseconds of `performance.now()`. */
  readonly readAt: number;
}

interface KeyFile {
  readonly file: string;
  /** Milliseconds since the epoch, rounded down to the minute. */
  readonly writtenAt: number;
  readonly open: boolean;
  readonly content: { readonly text: string } | { readonly fault: string };
}

const LARGEST_FILE = 65_536;
const byName = new Intl.Collator("en", { numeric: true });

/**
 * Reads every file of a directory. Ignores names that begin with a dot (`..data`), and directories. Throws
 * `ConfigError` if the directory itself cannot be read.
 */
export async function readKeyFiles(directory: string): Promise<KeyFiles> {
  const readAt = performance.now();
  const files: KeyFile[] = [];
  for (const name of await visibleNames(directory)) {
    const file = await readKeyFile(join(directory, name));
    if (file !== undefined) files.push(file);
  }
  const openToAll = isOpenToAll(directory, await stat(directory));
  const fingerprint = hash("sha256", JSON.stringify({ files, openToAll }));
  return { directory, files, openToAll, fingerprint, readAt };
}

/**
 * Returns the keys in these files, newest first. The age of a key is the `iat` of its JWK, else the time at which its
 * file was written, rounded down to the minute. Of keys of the same age, the last file name counts as the newest, since
 * the files of a Kubernetes Secret are all written at once and in any order. The `nbf` and `exp` of its JWK say when it
 * starts to sign and when it stops verifying. Throws `ConfigError` with all problems.
 */
export function keysIn(
  { directory, files }: KeyFiles,
  configured: SigningAlgorithm,
): readonly FoundKey[] {
  const found: FoundKey[] = [];
  const problems: ConfigProblem[] = [];
  for (const file of files) {
    const key = keyIn(file, configured);
    if (typeof key === "string") {
      problems.push({ file: file.file, message: `this is not a usable key: ${key}` });
    } else {
      found.push(key);
    }
  }
  if (problems.length > 0) throw new ConfigError(problems);
  if (found.length === 0) {
    const hint = "make one with sallyport keys generate";
    throw new ConfigError([{ file: directory, message: "this directory holds no keys", hint }]);
  }
  return found.toSorted((a, b) => b.madeAt - a.madeAt || byName.compare(b.file, a.file));
}

async function visibleNames(directory: string): Promise<string[]> {
  try {
    return (await readdir(directory)).filter((name) => !name.startsWith(".")).toSorted();
  } catch (error) {
    const message = `the directory of keys cannot be read: ${systemCode(error) ?? "unknown error"}`;
    throw new ConfigError([{ file: directory, message }]);
  }
}

async function readKeyFile(file: string): Promise<KeyFile | undefined> {
  const bare = { file, writtenAt: 0, open: false };
  try {
    if ((await stat(file)).isDirectory()) return undefined;
    const { text, stats } = await readRegularFile(file, LARGEST_FILE);
    const writtenAt = Math.floor(stats.mtimeMs / 60_000) * 60_000;
    return { file, writtenAt, open: isExposed(stats), content: { text } };
  } catch (error) {
    const code = systemCode(error) ?? "it cannot be read";
    const fault = code === "EACCES" ? `${code}: ${describePermissions(file)}` : code;
    return { ...bare, content: { fault } };
  }
}

/** Returns the key in a file, or why there is none, without quoting its content. */
function keyIn(
  { file, writtenAt, open, content }: KeyFile,
  configured: SigningAlgorithm,
): FoundKey | string {
  if ("fault" in content) return content.fault;
  try {
    const { key, algorithm: named, issuedAt, notBefore, expires } = readKey(content.text);
    const weakness = weaknessOf(key);
    if (weakness !== undefined) return weakness;
    const algorithm = algorithmOf(key, named, configured);
    if (algorithm === undefined) return '"alg" does not fit this key';
    return {
      file,
      key,
      algorithm,
      madeAt: issuedAt === undefined ? writtenAt : issuedAt * 1000,
      signsFrom: (notBefore ?? 0) * 1000,
      verifiesUntil: (expires ?? Infinity) * 1000,
      exposed: open && key.type !== "public",
    };
  } catch (error) {
    if (error instanceof KeyFormatError) return error.message;
    throw error;
  }
}
