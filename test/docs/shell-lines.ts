import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished } from "vitest";
import { entry } from "../support/entry.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { ROOT } from "./markdown.ts";

/** Defines the command the way the documents do, but without npx, which takes longer than the commands. */
export const SALLYPORT = `sallyport() { "${process.execPath}" "${entry()}" "$@"; }\n`;

/**
 * Creates a directory with those parts of this repository that the documents' commands need. Removed after the test.
 */
export async function cloneOfTheRepository(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const clone = join(directory.path, "sallyport");
  await mkdir(clone);
  for (const name of ["bin", "src", "node_modules", "package.json"]) {
    await symlink(join(ROOT, name), join(clone, name));
  }
  return clone;
}

/** Runs lines in a shell that stops at the first error. Returns their output; throws if they fail. */
export async function runLines(lines: string, cwd: string, input = ""): Promise<string> {
  const child = spawn("sh", ["-eu", "-c", lines], { cwd });
  // Lines that read no input may end before it is written.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  expect(code, err).toBe(0);
  return out;
}
