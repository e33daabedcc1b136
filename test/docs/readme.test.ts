/** The README is short, its example configuration passes the check, and the demo does what it says. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startChild } from "../support/child.ts";
import { SOURCES } from "../support/entry.ts";
import { checked, namedFiles } from "./checked-configuration.ts";
import { readDocument, ROOT } from "./markdown.ts";
import { runLines } from "./shell-lines.ts";

const readme = readDocument("README.md");
const shell = readme.blocks.filter(({ language }) => language === "sh").map(({ text }) => text);
const curlIsAbsent = spawnSync("curl", ["--version"]).status !== 0;

test("it has fewer than 150 lines", () => {
  expect(readme.text.trimEnd().split("\n").length).toBeLessThan(150);
});

test("it starts the demo with one command", () => {
  expect(shell).toContain("npm ci && npm start\n");
});

test("the example has five lines, and passes the check", async () => {
  const [example = "", ...more] = readme.blocks
    .filter(({ language }) => language === "yaml")
    .map(({ text }) => text);
  expect(more).toEqual([]);
  expect(example).toMatch(/^# config\.yaml\n/);
  expect(example.trimEnd().split("\n")).toHaveLength(5);
  expect(await checked(example, await namedFiles())).toMatchObject({ code: 0, err: "" });
});

test.skipIf(curlIsAbsent)(
  "the lines that the demo prints do what the README says of them (skipped where curl is absent)",
  { timeout: 60_000 },
  async () => {
    const demo = startChild(SOURCES, [
      "demo",
      "--listen=127.0.0.1:0",
      "--admin-listen=127.0.0.1:0",
    ]);
    onTestFinished(() => demo.kill());
    await demo.line((line) => (line.includes('"admin listening"') ? line : undefined));
    /** The lines below a title of the banner. */
    const pasted = (title: string): string => {
      const below = demo.lines.slice(demo.lines.findIndex((line) => line.startsWith(title)) + 1);
      return below.slice(0, below.indexOf("")).join("\n");
    };
    const login = [pasted("Define these first"), pasted("Log in and keep the token")];
    const sent = [...login, pasted("Call the backend")].join("\n");
    const answer = JSON.parse(await runLines(sent, ROOT)) as { headers: Record<string, string> };
    expect(answer).toMatchObject({ path: "/orders?page=2", headers: { "x-auth-subject": "demo" } });
    expect(Object.keys(answer.headers)).not.toContain("authorization");
    const refused = [...login, pasted("Without a token")].join("\n");
    expect(await runLines(refused, ROOT)).toMatch(/ 401 [^]*"success":false/);
  },
);

test("the demo accepts other ports, as the README says", () => {
  const [, flags = ""] = /`npm start -- ([^`]+)`/.exec(readme.text) ?? [];
  const help = spawnSync(process.execPath, [join(ROOT, "src/main.ts"), "demo", "--help"]);
  const named = [...flags.matchAll(/--[a-z-]+/g)].map(([flag]) => flag);
  expect(named).toHaveLength(2);
  for (const flag of named) expect(help.stdout.toString()).toContain(flag);
});
