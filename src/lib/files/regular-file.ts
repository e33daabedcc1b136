import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { type ContentIdentity, FileContent } from "./file-content.ts";
import { formatSize } from "../text/size.ts";
import { systemCode } from "../text/error-code.ts";

/** The maximum size that Kubernetes allows for a ConfigMap or a Secret, in bytes. */
const DEFAULT_MAX_BYTES = 1024 ** 2;

/** Without O_NONBLOCK, opening a pipe blocks until it has a writer. The flag has no effect on regular files. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** The file has an unsuitable kind or size; `code` says why, like the code of a system error. */
class UnsuitableFileError extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/**
 * Reads a whole regular file, following links. Refuses pipes, devices and sockets, which may never end.
 *
 * @param maxBytes the maximum size, in bytes.
 * @throws the `fs` error, or an error whose `code` says in words why the file is unsuitable. Neither quotes the
 * content.
 */
export function readRegularFileSync(path: string, maxBytes = DEFAULT_MAX_BYTES): FileContent {
  const readAt = performance.now();
  const file = openSync(path, OPEN_FLAGS);
  try {
    const stats = suitableStats(fstatSync(file), maxBytes);
    return new FileContent({ path, bytes: readFileSync(file), stats, readAt });
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
  const stats = suitableStats(await file.stat(), maxBytes);
  return new FileContent({ path, bytes: await file.readFile(), stats, readAt }, before);
}

function suitableStats(stats: Stats, maxBytes: number): Stats {
  if (stats.isDirectory()) throw new UnsuitableFileError("not a regular file but a directory");
  if (!stats.isFile()) throw new UnsuitableFileError("not a regular file");
  if (stats.size > maxBytes) throw new UnsuitableFileError(`larger than ${formatSize(maxBytes)}`);
  return stats;
}

/** Describes why a file could not be read: `ENOENT`, `not a regular file`. */
export function readFailure(error: unknown): string {
  return systemCode(error) ?? "unknown error";
}
