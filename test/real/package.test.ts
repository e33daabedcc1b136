/** The package that `npm pack` makes, installed in an empty directory. */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const ROOT = resolve(import.meta.dirname, "../..");

/** Runs a program with the Node of this test first in PATH. */
async function output(cwd: string, program: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` };
  const { stdout } = await promisify(execFile)(program, args, { cwd, env });
  return stdout;
}

it("runs the commands from an empty directory", { timeout: 120_000 }, async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await output(ROOT, "npm", "pack", "--silent", "--pack-destination", directory.path);
  const [archive = ""] = await readdir(directory.path);
  expect(archive).toMatch(/^sallyport-\d+\.\d+\.\d+\.tgz$/);
  await output(directory.path, "npm", "init", "--yes");
  await output(directory.path, "npm", "install", "--prefer-offline", "--no-audit", `./${archive}`);
  expect(await output(directory.path, "npx", "sallyport", "version")).toMatch(/^\d+\.\d+\.\d+\n$/);
  const created = await output(directory.path, "npx", "sallyport", "init");
  expect(created).toContain("npx sallyport serve --config deployment/config.yaml");
  const config = join("deployment", "config.yaml");
  const checked = await output(directory.path, "npx", "sallyport", "check", "--config", config);
  expect(checked).toContain("is valid");
});
