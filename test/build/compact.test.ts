/** Removes white space from the code of libraries, and parts of them that are never used. */
import { execFile } from "node:child_process";
import { mkdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { type Plugin, rolldown } from "rolldown";
import { expect, it, onTestFinished } from "vitest";
import { compact } from "../../build/compact.ts";
import { leftOut } from "../../build/left-out.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const LIBRARY = `/*! All rights reserved. */
exports.call = function call(callee) {
  // Calls it.
  const text = \`one
    two \u{1F600}\`;
  return callee(text);
};
exports.rare = () => require("./rare.js").answer;
`;

const OURS = `import { call, rare } from "library";
function asked(text) {
  if (text.length !== 14) throw new RangeError(text);
  // The reason.
  throw new Error("as asked");
}
try {
  call(asked);
} catch (error) {
  console.log(error.stack);
}
export const seldom = rare;
if (process.argv.includes("rare")) console.log(rare());
`;

/** Bundles our code with the library. @returns the bundle, and what it prints. */
async function bundled(plugins: Plugin[], ...args: string[]) {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await mkdir(join(directory.path, "node_modules/library"), { recursive: true });
  await directory.write("package.json", '{ "type": "module" }');
  await directory.write("node_modules/library/package.json", '{ "name": "library" }');
  await directory.write("node_modules/library/index.js", LIBRARY);
  await directory.write("node_modules/library/rare.js", "exports.answer = 42;");
  const input = await directory.write("main.js", OURS);
  const file = join(directory.path, "bundle.js");
  await using bundle = await rolldown({ input, cwd: directory.path, platform: "node", plugins });
  await bundle.write({ file, minify: false });
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args]);
  return { code: await readFile(file, "utf8"), stdout };
}

it("puts each module of a library on one line, and stack traces stay the same", async () => {
  const { code, stdout } = await bundled([compact()]);
  const lines = code.split("\n");
  const named = lines.indexOf("// node_modules/library/index.js");
  // The two-line text belongs to the library.
  expect(lines[named + 1]).toMatch(/function call\(\w\)\{.*`one$/);
  expect(code).not.toMatch(/Calls it|All rights reserved/);
  const at = (line: number, name: string) =>
    expect.stringMatching(`at ${name} .*:${line}:\\d+\\)$`);
  const thrown = lines.findIndex((line) => line.includes('throw new Error("as asked")')) + 1;
  expect(stdout.split("\n").slice(0, 3)).toEqual([
    "Error: as asked",
    at(thrown, "asked"),
    at(named + 2, "[\\w.]*call"),
  ]);
});

it("fails if a library cannot be read", async () => {
  const spoil: Plugin = {
    name: "spoil",
    renderChunk: (code) => code.replace("function call(callee)", "function call(callee"),
  };
  await expect(bundled([spoil, compact()])).rejects.toThrow("node_modules/library/index.js");
});

it("omits the named parts, and everything else works", async () => {
  const { code, stdout } = await bundled([leftOut(["library/rare.js"])], "rare");
  expect(code).not.toContain("42");
  expect(stdout).toMatch(/^Error: as asked\n[^]*\nundefined\n$/);
});

it("fails if nothing imports a part to omit", async () => {
  await expect(bundled([leftOut(["library/common.js"])])).rejects.toThrow("library/common.js");
});
