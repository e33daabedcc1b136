import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { rolldown } from "rolldown";
import { expect, it, onTestFinished } from "vitest";
import { licences } from "../../build/licences.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const ABOUT = { name: "@far/away", version: "1.2.3", type: "module", exports: "./index.js" };

/** Bundles a program that imports the package. Returns the text about licences. */
async function bundleWith(about: object, files: Readonly<Record<string, string>>): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const folder = join(directory.path, "node_modules/@far/away");
  const all = {
    "package.json": JSON.stringify({ ...ABOUT, ...about }),
    "index.js": 'export { far } from "./inner/far.js";',
    "inner/package.json": '{ "type": "module" }',
    "inner/far.js": "export const far = Math.random();",
    ...files,
  };
  for (const [name, text] of Object.entries(all)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  const input = await directory.write(
    "main.js",
    'import { far } from "@far/away"; console.log(far);',
  );
  await using bundle = await rolldown({ input, plugins: [licences("LICENCES")] });
  const { output } = await bundle.generate();
  const told = output.find(({ fileName }) => fileName === "LICENCES");
  return told?.type === "asset" ? String(told.source) : "";
}

it("lists the package, its licence, and every file about it", async () => {
  const files = { "LICENSE.md": "You may.", NOTICE: "Made far away.", "README.md": "Hello." };
  const told = await bundleWith({ license: "Apache-2.0" }, files);
  expect(told).toContain("\n@far/away 1.2.3 (Apache-2.0)\n\nYou may.\n\nMade far away.\n");
  expect(told).not.toContain("Hello.");
});

it("lists a text once if several packages contain it", async () => {
  const about = JSON.stringify({ name: "near", version: "2.0.0", license: "MIT" });
  const told = await bundleWith(
    { license: "ISC" },
    {
      LICENSE: "You may.",
      "inner/far.js": 'export { far } from "near";',
      "node_modules/near/package.json": about,
      "node_modules/near/index.js": "exports.far = Math.random();",
      "node_modules/near/LICENSE": "You may.",
    },
  );
  expect(told).toContain("\n@far/away 1.2.3 (ISC)\nnear 2.0.0 (MIT)\n\nYou may.\n");
  expect(told.match(/You may/g)).toHaveLength(1);
});

it.each([
  ["no file with its licence", { license: "MIT" }, {}],
  ["no information about its licence", {}, { LICENSE: "You may." }],
  ["a licence with further obligations", { license: "GPL-3.0-only" }, { LICENSE: "You may, but." }],
])("fails with a package that has %s", async (_what, about, files) => {
  await expect(bundleWith(about, files)).rejects.toThrow("@far/away 1.2.3");
});
