import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Creates a named pipe without a writer, so that opening it for reading blocks. @returns its path. */
export async function namedPipe(path: string): Promise<string> {
  await promisify(execFile)("mkfifo", [path]);
  return path;
}
