/** `bin/sallyport` runs the sources with a suitable Node, and says in one line if there is none. */
import { execFile } from "node:child_process";
import { cp, mkdir, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it, onTestFinished } from "vitest";
import { unsupportedNode } from "../../src/lib/node-version.ts";
import { SOURCES } from "../support/entry.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = fileURLToPath(new URL("../../", import.meta.url));
const LAUNCHER = join(REPOSITORY, "bin/sallyport");

interface Ended {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

/** Runs it with only these directories and those of the system's tools in PATH. */
function run(launcher: string, args: readonly string[], ...path: string[]): Promise<Ended> {
  const { promise, resolve } = Promise.withResolvers<Ended>();
  const env = { PATH: [...path, "/usr/bin", "/bin"].join(":") };
  execFile(launcher, [...args], { env, cwd: "/" }, (error, out, err) => {
    resolve({ code: error === null ? 0 : Number(error.code), out, err });
  });
  return promise;
}

/** Creates a checkout without node_modules, and a Node that cannot run TypeScript, like those before 22.18. */
async function checkout() {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await cp(dirname(LAUNCHER), join(directory.path, "bin"), { recursive: true });
  await mkdir(join(directory.path, "src"));
  await symlink("../bin/main.ts", join(directory.path, "src/main.ts"));
  await writeFile(join(directory.path, "package.json"), '{ "type": "module" }');
  await mkdir(join(directory.path, "path"));
  const node = `#!/bin/sh\nexec ${process.execPath} --no-strip-types "$@"\n`;
  await writeFile(join(directory.path, "path/node"), node, { mode: 0o755 });
  return { root: directory.path, path: join(directory.path, "path") };
}

it("uses the Node installed by npm ci, whatever node is in PATH", async () => {
  const { path } = await checkout();
  const { code, out, err } = await run(LAUNCHER, ["version"], path);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  expect(out).toMatch(/^\d+\.\d+\.\d+/m);
});

it("works through a symbolic link", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await symlink(LAUNCHER, join(directory.path, "sallyport"));
  expect((await run(join(directory.path, "sallyport"), ["version"])).code).toBe(0);
});

it("without npm ci, uses a Node in PATH that can run TypeScript", async () => {
  const { root } = await checkout();
  await writeFile(join(root, "src/entry.ts"), "console.log(process.argv[2] as string);");
  const { out } = await run(join(root, "bin/sallyport"), ["it ran"], dirname(process.execPath));
  expect(out).toBe("it ran\n");
});

const REFUSED = {
  code: 1,
  out: "",
  err: `${unsupportedNode("20.20.2")?.replace("20.20.2", process.versions.node)}; npm ci brings one\n`,
};

it("says in one line that a Node is too old", async () => {
  const { root, path } = await checkout();
  expect(await run(join(root, "bin/sallyport"), ["demo"], path)).toEqual(REFUSED);
});

it("says so, too, if that Node runs the sources directly", async () => {
  const { path } = await checkout();
  expect(await run(join(path, "node"), [SOURCES, "demo"])).toEqual(REFUSED);
});

it("says in one line that there is no Node", async () => {
  const { root } = await checkout();
  // Everything the launcher needs, except Node.
  const tools = join(root, "tools");
  await mkdir(tools);
  for (const tool of ["dirname", "readlink", "sh"]) {
    await symlink(`/usr/bin/${tool}`, join(tools, tool));
  }
  const { promise, resolve } = Promise.withResolvers<Ended>();
  execFile(join(root, "bin/sallyport"), { env: { PATH: tools } }, (error, out, err) => {
    resolve({ code: Number(error?.code), out, err });
  });
  expect(await promise).toEqual({
    code: 1,
    out: "",
    err: "sallyport: there is no Node here: it needs 24.18.1 or newer of the 24 line, or 26.5.1 or newer; npm ci brings one\n",
  });
});
