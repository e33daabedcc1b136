/** `bin/sallyport` runs the source by a Node that can, and says in one line when there is none. */
import { execFile } from "node:child_process";
import { copyFile, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
const LAUNCHER = join(REPOSITORY, "bin/sallyport");

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs it with nothing but these directories, and those of the system's tools, in PATH. */
function run(launcher: string, args: readonly string[], ...path: string[]): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const env = { PATH: [...path, "/usr/bin", "/bin"].join(":") };
  execFile(launcher, [...args], { env, cwd: "/" }, (error, out, err) => {
    resolve({ code: error === null ? 0 : Number(error.code), out, err });
  });
  return promise;
}

/** A checkout without node_modules, and a Node that answers as one of this version does. */
async function checkout(version: string) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await mkdir(join(directory.path, "bin"));
  await copyFile(LAUNCHER, join(directory.path, "bin/sallyport"));
  await mkdir(join(directory.path, "path"));
  const node = `#!/bin/sh\ncase $2 in *typescript*) echo none;; *) echo ${version};; esac\n`;
  await writeFile(join(directory.path, "path/node"), node, { mode: 0o755 });
  return { launcher: join(directory.path, "bin/sallyport"), path: join(directory.path, "path") };
}

it("runs by the Node that npm ci brought, whatever node is in PATH", async () => {
  const { path } = await checkout("20.20.2");
  const { code, out, err } = await run(LAUNCHER, ["version"], path);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^\d+\.\d+\.\d+/m);
});

it("does so through a link, too", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await symlink(LAUNCHER, join(directory.path, "sallyport"));
  expect((await run(join(directory.path, "sallyport"), ["version"])).code).toBe(0);
});

it("runs by a Node in PATH that can read TypeScript, where npm ci was not run", async () => {
  const { launcher } = await checkout("20.20.2");
  await mkdir(join(dirname(launcher), "../src"));
  await writeFile(join(dirname(launcher), "../src/main.ts"), "console.log(process.argv[2]);");
  const { out } = await run(launcher, ["it ran"], dirname(process.execPath));
  expect(out).toBe("it ran\n");
});

it.each(["18.20.8", "20.20.2"])("refuses Node %s in one line", async (version) => {
  const { launcher, path } = await checkout(version);
  expect(await run(launcher, ["demo"], path)).toEqual({
    code: 1,
    out: "",
    err: `sallyport: Node ${version} is not supported: it needs 24.18.1 or newer of the 24 line, or 26.5.1 or newer; npm ci brings one\n`,
  });
});
