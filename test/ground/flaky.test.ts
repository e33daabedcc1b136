/** The report about a test that fails once and passes when it is retried. */
import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const VITEST = join(ROOT, "node_modules/vitest/vitest.mjs");
const REPORTER = join(ROOT, "test/support/flaky.ts");

const TESTS = `
let tries = 0;
test("now and then", () => { if (tries++ === 0) throw new Error("the first try\\nwith its reason"); });
test("always", () => undefined);
`;

it("names the flaky test with its error, and no other test", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  await directory.write("two.test.js", TESTS);
  const list = join(directory.path, "flaky");
  const options = ["--globals", "--retry=1", "--root", directory.path, "--reporter", REPORTER];
  const { stderr } = await promisify(execFile)(process.execPath, [VITEST, "run", ...options], {
    env: { ...process.env, FLAKY_TESTS: list },
    cwd: directory.path,
  });
  const named = "  two.test.js > now and then\n    the first try\n    with its reason\n";
  expect(stderr).toContain(`FLAKY: failed, and passed when tried again\n${named}`);
  expect(await readFile(list, "utf8")).toBe(named);
});
