/** Everything named in `docs/` exists: commands with their options, configuration keys, metrics, files. */
import { existsSync, globSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { readUsersFile } from "../../src/credentials/stores/users-file.ts";
import { command } from "../cli/command.ts";
import { checked, namedFiles } from "./checked-configuration.ts";
import { codeIn, readDocument, ROOT } from "./markdown.ts";

const names = globSync("docs/**/*.md", { cwd: ROOT }).toSorted();
const REFERENCE = "docs/reference/configuration.md";
const documents = names.map((name) => ({ name, ...readDocument(name) }));

/** The help of each command. */
const helps = new Map<string, string>();
const keys = new Set<string>();
let metrics: ReadonlySet<string>;

beforeAll(async () => {
  const { out } = await command(["--help"]);
  for (const [, name = ""] of out.matchAll(/^ {2}(\S+) {2,}/gm)) {
    helps.set(name, (await command([name, "--help"])).out);
  }
  const rows = readDocument(REFERENCE).rows("key", "meaning");
  for (const { key } of rows) addWithParents(codeIn(key));
  const listed = readDocument("docs/reference/metrics.md").rows(
    "metric",
    "type",
    "labels",
    "meaning",
  );
  metrics = new Set(listed.map((row) => codeIn(row["metric"])));
});

describe.each(documents)("$name", ({ name, text, blocks }) => {
  test("names existing commands and options", () => {
    const shell = blocks.filter(({ language }) => language === "sh").map((block) => block.text);
    for (const line of [...shell, ...spansIn(text)].flatMap(linesOf)) {
      for (const [, name = "", rest = ""] of line.matchAll(CALL)) {
        const help = helps.get(name);
        expect(help, line).toBeDefined();
        for (const [flag] of rest.matchAll(/(?<![\w-])--[a-z][a-z-]*/g))
          expect(help).toContain(flag);
      }
    }
  });

  test("names existing configuration keys", () => {
    const named = spansIn(text).filter((span) => KEY.test(span));
    expect(named.filter((key) => !keys.has(key))).toEqual([]);
  });

  test("names existing metrics", () => {
    const named = [...text.matchAll(/\bsallyport_[a-z_]+/g)].map(([name]) => name);
    const known = (name: string): boolean =>
      metrics.has(name) || metrics.has(name.replace(/_(?:bucket|sum|count)$/, ""));
    expect(named.filter((name) => !known(name))).toEqual([]);
  });

  test("names existing files of the repository", () => {
    const named = spansIn(text).filter((span) =>
      /^(?:test|src|deploy|docs|bench)\/[\w./-]+$/.test(span),
    );
    expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });

  test("shows valid configurations and users files, and labels each block", async () => {
    const yaml = blocks.filter(({ language }) => language === "yaml");
    // The sections in the reference are one configuration together.
    const sections = yaml.filter((block) => name === REFERENCE && !block.text.startsWith("#"));
    const joined = `# config.yaml\n${sections.map((block) => block.text).join("")}`;
    const named = [
      ...yaml.filter((block) => !sections.includes(block)),
      ...(name === REFERENCE ? [{ text: joined }] : []),
    ].map((block) => ({ ...block, file: /^# (\S+\.yaml)\n/.exec(block.text)?.[1] }));
    const shown = Object.fromEntries(named.map(({ file = "", text: content }) => [file, content]));
    for (const { file, ...block } of named) {
      expect(file, block.text).toBeDefined();
      if (file === "config.yaml") {
        const files = { ...(await namedFiles()), ...shown };
        expect(await checked(block.text, files)).toMatchObject({ code: 0, err: "" });
      } else if (file === "users.yaml") {
        expect(readUsersFile(Buffer.from(block.text), file).size).toBeGreaterThan(0);
      }
    }
  });
});

test("wrong names would be found", () => {
  expect([..."sallyport chekc --config x".matchAll(CALL)].map(([, name]) => name)).toEqual([
    "chekc",
  ]);
  expect(KEY.test("server.drain.dealy") && !keys.has("server.drain.dealy")).toBe(true);
  expect(helps.get("check")).not.toContain("--confg");
});

/** `sallyport check …`, `node src/main.ts check …`, up to the end of the shell command. */
const CALL =
  /(?:(?<![\w./-])sallyport|src\/main\.ts|dist\/main\.js"?,?) "?([a-z][a-z-]*)\b([^|;&\n]*)/g;
const KEY =
  /^(?:server|admin|login|users\[\]|tokens|version|identity|routes\[\]|upstreams\.<name>|log)\.[\w.[\]<>]+$/;

/** Returns the texts between single backquotes, outside of blocks. */
function spansIn(text: string): string[] {
  const prose = text.replaceAll(/^```.*?^```$/gms, "");
  return [...prose.matchAll(/`([^`\n]+)`/g)].map(([, span = ""]) => span);
}

function linesOf(text: string): string[] {
  return text.replaceAll("\\\n", " ").split("\n");
}

/** Adds a key and every mapping that contains it. */
function addWithParents(key: string): void {
  const parts = key.split(".");
  for (let length = 1; length <= parts.length; length++) keys.add(parts.slice(0, length).join("."));
}
