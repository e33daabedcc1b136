/** The README's tables of commands and exit codes say what the command line says. */
import { expect, test } from "vitest";
import { EXIT } from "../../src/cli/command.ts";
import { command } from "../cli/command.ts";
import { codeIn, readDocument } from "./markdown.ts";
import { cloneOfTheRepository, runLines } from "./shell-lines.ts";

const readme = readDocument("README.md");

test("every command is told in the words of the overview, and no other", async () => {
  const { out } = await command(["--help"]);
  const overview = [...out.matchAll(/^ {2}(\S+) {2,}(.*)$/gm)].map(([, name, does]) => [
    name,
    does,
  ]);
  const told = readme.rows("command", "does").map((row) => [codeIn(row["command"]), row["does"]]);
  expect(told).toEqual(overview);
});

test("the line that makes it a command of the shell works, in any directory", async () => {
  const clone = await cloneOfTheRepository();
  const [alias = ""] = readme.blocks
    .filter(({ language, text }) => language === "sh" && text.startsWith("alias "))
    .map(({ text }) => text);
  const printed = await runLines(`${alias}cd /\nsallyport version\n`, clone);
  expect(printed).toMatch(/^\d+\.\d+\.\d+\b/);
});

test("every exit code is told, and no other", () => {
  const told = readme.rows("exit code", "means").map((row) => Number(row["exit code"]));
  expect(told).toEqual(Object.values(EXIT));
});
