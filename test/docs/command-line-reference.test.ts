/** The tables of commands and exit codes in `docs/reference/command-line.md` match the program. */
import { expect, test } from "vitest";
import { EXIT } from "../../src/cli/command.ts";
import { command } from "../cli/command.ts";
import { codeIn, readDocument } from "./markdown.ts";
import { cloneOfTheRepository, runLines } from "./shell-lines.ts";

const reference = readDocument("docs/reference/command-line.md");

test("exactly the commands of the overview are listed, with the same descriptions", async () => {
  const { out } = await command(["--help"]);
  const overview = [...out.matchAll(/^ {2}(\S+) {2,}(.*)$/gm)].map(([, name, does]) => [
    name,
    does,
  ]);
  const listed = reference
    .rows("command", "does")
    .map((row) => [codeIn(row["command"]), row["does"]]);
  expect(listed).toEqual(overview);
});

test("the line that defines the shell command works in any directory", async () => {
  const clone = await cloneOfTheRepository();
  const [alias = ""] = reference.blocks
    .filter(({ language, text }) => language === "sh" && text.startsWith("PATH="))
    .map(({ text }) => text);
  const printed = await runLines(`${alias}cd /\nsallyport version\n`, clone);
  expect(printed).toMatch(/^\d+\.\d+\.\d+\b/);
});

test("exactly the existing exit codes are listed", () => {
  const listed = reference.rows("exit code", "means").map((row) => Number(row["exit code"]));
  expect(listed).toEqual(Object.values(EXIT));
});
