import { closeSync, constants, fstatSync, openSync, readSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import { hash } from "node:crypto";
import { formatSize } from "../text/duration.ts";
import { systemCode } from "../text/error-code.ts";

/** Identifies the content of a file without keeping its bytes. */
export interface ContentIdentity {
  readonly fingerprint: string;
  /** The same object for consecutive reads of equal content: a key for what was derived from the content. */
  readonly key: object;
}

/** The content of a file at the time of one read. It does not change when the file does. */
export class FileContent {
  readonly path: string;
  readonly bytes: Buffer;
  /** Mode, owner and time of the file. */
  readonly stats: Pick<Stats, "mode" | "uid" | "mtimeMs">;
  /** When the read started, in milliseconds of `performance.now()`. */
  readonly readAt: number;
  readonly identity: ContentIdentity;

  /** @param before the identity of the previous content. */
  constructor(
    read: Pick<FileContent, "path" | "bytes" | "stats" | "readAt">,
    before?: ContentIdentity,
  ) {
    this.path = read.path;
    this.bytes = read.bytes;
    this.stats = read.stats;
    this.readAt = read.readAt;
    const print = fingerprint(read.bytes);
    this.identity = before?.fingerprint === print ? before : { fingerprint: print, key: {} };
  }

  /** SHA-256 of the bytes. */
  get fingerprint(): string {
    return this.identity.fingerprint;
  }

  /** The bytes as UTF-8. */
  get text(): string {
    return this.bytes.toString("utf8");
  }
}

/** Returns the SHA-256 of some content in base64url, to detect changes without keeping the content. */
export function fingerprint(content: string | Buffer): string {
  return hash("sha256", content, "base64url");
}

/** The maximum size that Kubernetes allows for a ConfigMap or a Secret, in bytes. */
const DEFAULT_MAX_BYTES = 1024 ** 2;

/** Without O_NONBLOCK, opening a pipe blocks until it has a writer. The flag has no effect on regular files. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;
/** For a file of our own: a symbolic link could lead to another one. Opening it fails with ELOOP. */
export const UNLINKED = OPEN_FLAGS | constants.O_NOFOLLOW;

/** The file has an unsuitable kind or size; `code` says why, like the code of a system error. */
class UnsuitableFileError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/**
 * Reads a whole regular file. Refuses pipes, devices and sockets, which may never end.
 *
 * @param maxBytes the maximum size, in bytes.
 * @param flags `UNLINKED` for a file that must not be a link; by default, links are followed.
 * @throws the `fs` error, or an error whose `code` says in words why the file is unsuitable. Neither quotes the
 * content.
 */
export function readRegularFileSync(
  path: string,
  maxBytes = DEFAULT_MAX_BYTES,
  flags = OPEN_FLAGS,
): FileContent {
  const readAt = performance.now();
  const file = openSync(path, flags);
  try {
    const stats = suitableStats(fstatSync(file));
    const bytes = readToEndSync(file, maxBytes);
    return new FileContent({ path, bytes: suitableBytes(bytes, maxBytes), stats, readAt });
  } finally {
    closeSync(file);
  }
}

/**
 * The asynchronous form of `readRegularFileSync`.
 *
 * @param before the identity of the previous content.
 */
export async function readRegularFile(
  path: string,
  maxBytes = DEFAULT_MAX_BYTES,
  before?: ContentIdentity,
): Promise<FileContent> {
  const readAt = performance.now();
  await using file = await open(path, OPEN_FLAGS);
  const stats = suitableStats(await file.stat());
  const bytes = await buffer(file.createReadStream({ end: maxBytes }));
  return new FileContent({ path, bytes: suitableBytes(bytes, maxBytes), stats, readAt }, before);
}

/** Reads no more than a byte above the maximum: a file that is being written grows while it is read. */
function readToEndSync(file: number, maxBytes: number): Buffer {
  const room = Buffer.allocUnsafe(maxBytes + 1);
  let length = 0;
  for (;;) {
    const bytesRead = readSync(file, room, { offset: length });
    length += bytesRead;
    if (bytesRead === 0) return Buffer.from(room.subarray(0, length));
  }
}

function suitableStats(stats: Stats): Stats {
  if (stats.isDirectory()) throw new UnsuitableFileError("not a regular file but a directory");
  if (!stats.isFile()) throw new UnsuitableFileError("not a regular file");
  return stats;
}

function suitableBytes(bytes: Buffer, maxBytes: number): Buffer {
  if (bytes.length > maxBytes)
    throw new UnsuitableFileError(`larger than ${formatSize(maxBytes)}: is it the right file?`);
  return bytes;
}

/** Describes why a file could not be read: `ENOENT`, `not a regular file`. */
export function readFailure(error: unknown): string {
  return systemCode(error) ?? "unknown error";
}
