import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { childCommand, command } from "./command.ts";
import { entry } from "../support/entry.ts";

const COMMANDS = [
  "serve",
  "demo",
  "init",
  "migrate",
  "check",
  "config",
  "doctor",
  "explain",
  "token",
  "hash-password",
  "api-key",
  "keys",
  "healthcheck",
  "top",
  "status",
  "reload",
  "drain",
  "selftest",
  "openapi",
  "schema",
  "completion",
  "version",
];

const PACKAGE = JSON.parse(
  readFileSync(new URL("../../package.json", import.meta.url), "utf8"),
) as { version: string };

describe("without a command", () => {
  it("every command is listed", async () => {
    const { code, out, err } = await command(["--help"]);
    expect(code).toBe(0);
    expect(out.match(/^ {2}[a-z-]+/gm)?.map((name) => name.trim())).toEqual(COMMANDS);
    expect(err).toBe("");
  });

  it("no arguments are a usage error", async () => {
    expect((await command([])).code).toBe(2);
  });

  it("an unknown command is a usage error, reported on standard error", async () => {
    const { code, out, err } = await childCommand(["serv"]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toBe(
      'sallyport: there is no command "serv"; did you mean serve?\nsee sallyport --help\n',
    );
  });

  it.each([
    ["\u001B[2Jx"],
    ["check", "--\u001B[2Jx"],
    ["check", "--format", "\u009B2J\u2028"],
    ["check", "--set", "\u202Ex\n"],
    ["token", "\u001B]0;x\u0007"],
    ["healthcheck", "--url", "\u001B[2J"],
  ])("the message about %j contains no terminal control sequences", async (...args) => {
    const { code, err } = await command(args);
    expect(code).toBe(2);
    expect(err).not.toMatch(/[^\P{C}\n]|\p{Zl}|\p{Zp}/u);
    expect(err.split("\n").length).toBeLessThan(4);
  });
});

describe.each(COMMANDS)("%s", (name) => {
  it("has a help text", async () => {
    for (const flag of ["--help", "-h"]) {
      const { code, out, err } = await command([name, flag]);
      expect({ code, err }).toEqual({ code: 0, err: "" });
      expect(out).toMatch(new RegExp(`^Usage: sallyport ${name}\\b`));
      expect(out).toMatch(/^ +-h, --help /m);
    }
  });

  // Both take a word: a file, a URL.
  const words = ["check", "explain"].includes(name) ? [] : ["nonsense"];
  it.each(["--nonsense", ...words])("refuses %s", async (word) => {
    const { code, out, err } = await command([name, word]);
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(word);
    expect(err).toContain(`see sallyport ${name} --help\n`);
    expect(err.split("\n").length).toBeLessThan(4);
  });
});

it.each([
  ["check", "--format", "xml"],
  ["check", "--set", "server.listen"],
  ["healthcheck", "--url", "https://127.0.0.1/"],
  ["healthcheck", "--url", "9464"],
  ["demo", "--listen", "8443"],
  ["demo", "--listen", "192.0.2.1:8443"],
  ["demo", "--admin-listen", "127.0.0.1:x"],
  ["demo", "--listen"],
])("%s %s %s is a usage error", async (...args) => {
  const { code, out } = await command(args);
  expect({ code, out }).toEqual({ code: 2, out: "" });
});

describe("the version", () => {
  it("is the package's", async () => {
    const expected = { code: 0, out: `${PACKAGE.version}\n`, err: "" };
    expect(await command(["version"])).toEqual(expected);
    expect(await command(["--version"])).toEqual(expected);
  });

  it("includes Node's with --verbose", async () => {
    const { out } = await childCommand(["version", "--verbose"]);
    expect(out).toBe(`sallyport ${PACKAGE.version}\nnode ${process.versions.node}\n`);
  });
});

it("a closed pipe is not an error", () => {
  // `:` ends before Node has started.
  const line = '{ "$0" "$1" schema; echo $? >&2; } | :';
  const { stderr } = spawnSync("sh", ["-c", line, process.execPath, entry()], { encoding: "utf8" });
  expect(stderr).toBe("0\n");
});
