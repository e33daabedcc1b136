import { closeSync, constants, fstatSync, openSync, readFileSync, type Stats } from "node:fs";
import { open } from "node:fs/promises";
import { formatSize } from "./size.ts";

/** What Kubernetes lets a ConfigMap or a Secret hold. */
const LARGEST_BYTES = 1024 ** 2;

/** To open a pipe would else take until somebody writes into it: for good. Files do not care. */
const HOW = constants.O_RDONLY | constants.O_NONBLOCK;

/** Why a file is not read. It is told where the system's errors are, by `code`. */
class UnfitFile extends Error {
  readonly code: string;

  constructor(code: string) {
    super(code);
    this.code = code;
  }
}

/**
 * Reads a file that is all in memory then; follows links. Pipes, devices and sockets are refused, they may never end.
 *
 * @param largest in bytes.
 * @throws the `fs` error, or an error whose `code` says in words why the file is not read. None quotes the file.
 */
export function readRegularFileSync(path: string, largest = LARGEST_BYTES): Buffer {
  const file = openSync(path, HOW);
  try {
    refuseUnfit(fstatSync(file), largest);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

/** The same, without waiting for the disk. */
export async function readRegularFile(path: string, largest = LARGEST_BYTES): Promise<Buffer> {
  await using file = await open(path, HOW);
  refuseUnfit(await file.stat(), largest);
  return await file.readFile();
}

function refuseUnfit(stats: Stats, largest: number): void {
  if (!stats.isFile()) throw new UnfitFile("not a regular file");
  if (stats.size > largest) throw new UnfitFile(`larger than ${formatSize(largest)}`);
}

/** Why a file could not be read: `ENOENT`, `not a regular file`. */
export function whyUnread(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "unknown error";
}
