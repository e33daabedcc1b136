/** The package from `npm pack`, installed in an empty directory. */
import { execFile } from "node:child_process";
import { readdir } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** Checks a package for common problems. */
const PUBLINT = "publint@0.3.25";

let packed: TemporaryDirectory;
let archive: string;

beforeAll(async () => {
  packed = await temporaryDirectory();
  await output(ROOT, "npm", "pack", "--silent", "--pack-destination", packed.path);
  const [name = ""] = await readdir(packed.path);
  expect(name).toMatch(/^sallyport-\d+\.\d+\.\d+\.tgz$/);
  archive = join(packed.path, name);
}, 120_000);

afterAll(() => packed?.close());

/** Runs a program with this test's Node first in PATH. @returns its output. */
async function output(cwd: string, program: string, ...args: readonly string[]): Promise<string> {
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env["PATH"] ?? ""}` };
  const { stdout } = await promisify(execFile)(program, args, { cwd, env });
  return stdout;
}

it("runs its commands from an empty directory", { timeout: 120_000 }, async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await output(directory.path, "npm", "init", "--yes");
  await output(directory.path, "npm", "install", "--prefer-offline", "--no-audit", archive);
  expect(await output(directory.path, "npx", "sallyport", "version")).toMatch(/^\d+\.\d+\.\d+\n$/);
  const created = await output(directory.path, "npx", "sallyport", "init");
  expect(created).toContain("npx sallyport serve --config deployment/config.yaml");
  const config = join("deployment", "config.yaml");
  const checked = await output(directory.path, "npx", "sallyport", "check", "--config", config);
  expect(checked).toContain("is valid");
});

it(
  "is published without dependencies, and installs without a registry",
  { timeout: 120_000 },
  async () => {
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.close());
    await output(directory.path, "tar", "-xzf", archive);
    const content = join(directory.path, "package");
    // The way `.github/workflows/release.yaml` does.
    await output(content, "npm", "pkg", "delete", "private", "dependencies");
    await output(content, "npm", "pack", "--silent", "--ignore-scripts");
    const [name = ""] = (await readdir(content)).filter((file) => file.endsWith(".tgz"));
    const empty = join(directory.path, "empty");
    await output(directory.path, "mkdir", empty);
    await output(empty, "npm", "init", "--yes");
    const offline = ["--offline", "--no-audit", "--cache", join(directory.path, "cache")];
    await output(empty, "npm", "install", ...offline, join(content, name));
    const installed = await readdir(join(empty, "node_modules"));
    expect(installed.filter((file) => !file.startsWith("."))).toEqual(["sallyport"]);
    expect(await output(empty, "npx", "sallyport", "version")).toMatch(/^\d+\.\d+\.\d+\n$/);
  },
);

it("publint finds no problems", { timeout: 120_000 }, async () => {
  const words = await output(packed.path, "npm", "exec", "--yes", PUBLINT, "--", "run", archive);
  expect(words).toContain("All good!");
});
