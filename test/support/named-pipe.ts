import { execFile } from "node:child_process";
import { promisify } from "node:util";

/** Makes a pipe that nobody writes into: whoever opens it for reading waits. Gives its path. */
export async function namedPipe(path: string): Promise<string> {
  await promisify(execFile)("mkfifo", [path]);
  return path;
}
