import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { installed, missing, runProgram } from "./program.ts";

const FETCH_MS = 90_000;
const BUILD_MS = 180_000;
/** The most time that `buildGo` takes, with some margin, in milliseconds. */
export const GO_BUILD_MS = FETCH_MS + BUILD_MS + 10_000;

/**
 * Builds the Go program of a folder with `main.go`, `go.mod` and `go.sum` as `program` in another directory.
 *
 * @returns undefined if it was built, or why it cannot be built here: no Go, or its modules cannot be fetched.
 * @throws Error with the output of the compiler.
 */
export async function buildGo(sources: string, directory: string): Promise<string | undefined> {
  const reason = missing("go");
  if (reason !== undefined) return reason;
  for (const name of ["main.go", "go.mod", "go.sum"]) {
    await copyFile(join(sources, name), join(directory, name));
  }
  const go = installed("go") ?? "go";
  const fetched = await runProgram(go, ["-C", directory, "mod", "download"], "", FETCH_MS);
  if (fetched.code !== 0) {
    return `the modules of Go cannot be fetched: ${fetched.err.slice(0, 200)}`;
  }
  const build = ["-C", directory, "build", "-mod=readonly", "-o", "program", "."];
  const built = await runProgram(go, build, "", BUILD_MS);
  if (built.code !== 0) throw new Error(`the Go program of ${sources}: ${built.err}`);
  return undefined;
}
