/** Completion scripts, run in the installed shells. */
import { spawnSync } from "node:child_process";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { command } from "./command.ts";

async function script(shell: string): Promise<string> {
  const { code, out, err } = await command(["completion", shell]);
  expect((await command(["completion", "--shell", shell])).out).toBe(out);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

/** The line up to the cursor, and what the shell offers there: words, or files. */
const CASES: readonly (readonly [line: string, offered: readonly string[] | "files"])[] = [
  ["che", ["check"]],
  ["check --str", ["--strict"]],
  ["keys ", ["generate", "list", "rotate", "retire"]],
  ["keys rot", ["rotate"]],
  ["keys rotate --publ", ["--publish-for"]],
  ["token i", ["inspect"]],
  ["token ", ["inspect", "mint", "revoke"]],
  ["token revoke --subj", ["--subject"]],
  ["completion ", ["bash", "zsh", "fish"]],
  ["completion --shell z", ["zsh"]],
  ["check --format ", ["text", "json"]],
  ["config --format y", ["yaml"]],
  ["init --for ", ["shell", "systemd", "kubernetes"]],
  ["migrate --from k", ["kube-rbac-proxy"]],
  ["help hash", ["hash-password"]],
  ["check --config ", "files"],
  ["serve -c ", "files"],
  ["token inspect --token-file ", "files"],
  ["selftest --ca ", "files"],
  ["token mint --subject ", []],
];

interface Run {
  readonly program: string;
  readonly args: readonly string[];
}

function printed({ program, args }: Run, cwd?: string): string[] {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  return stdout.split("\n").filter((line) => line !== "");
}

const isHere = (shell: string): boolean => spawnSync(shell, ["--version"]).status === 0;

/** Runs the function of bash in the way that readline does: an empty result leaves files to readline, as `-o default` says. */
async function inBash(line: string): Promise<string[] | "files"> {
  const words = ["sallyport", ...line.split(" ")].map((word) => `'${word}'`);
  const ask = `compopt() { [ "$*" = "+o default" ] && echo nothing; }
COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${words.length - 1}; _sallyport; printf '%s\n' "\${COMPREPLY[@]}"`;
  const run = { program: "bash", args: ["-c", `${await script("bash")}\n${ask}`] };
  const offered = printed(run);
  if (offered.length === 0) return "files";
  return offered.filter((word) => word !== "nothing");
}

/** Runs the function of zsh, in which `compadd` and `_files` print what they are to offer. */
async function inZsh(line: string): Promise<string[] | "files"> {
  const words = ["sallyport", ...line.split(" ")].map((word) => `'${word}'`);
  const last = line.split(" ").at(-1) ?? "";
  const ask = `compdef() { :; }; _files() { print files; }
compadd() { [[ $1 == -- ]] && shift; print -l -- "$@"; }
${await script("zsh")}
words=(${words.join(" ")}); CURRENT=${words.length}; _sallyport`;
  const offered = printed({ program: "zsh", args: ["-f", "-c", ask] });
  if (offered.includes("files")) return "files";
  return offered.filter((word) => word.startsWith(last) && (last !== "" || !word.startsWith("-")));
}

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await temporaryDirectory();
  await directory.write("zz-a-file", "");
});
afterAll(() => directory.close());

async function inFish(line: string): Promise<string[] | "files"> {
  const ask = `${await script("fish")}\ncomplete -C 'sallyport ${line}'`;
  const offered = printed({ program: "fish", args: ["--no-config", "-c", ask] }, directory.path);
  if (offered.includes("zz-a-file")) return "files";
  return offered.map((row) => row.split("\t")[0] ?? "");
}

describe.each([
  ["bash", inBash],
  ["zsh", inZsh],
  ["fish", inFish],
])("%s", (shell, offered) => {
  it.runIf(isHere(shell)).each(CASES)("completes `sallyport %s`", async (line, expected) => {
    const found = await offered(line);
    const sorted = found === "files" ? found : found.toSorted();
    expect(sorted).toEqual(expected === "files" ? expected : expected.toSorted());
  });
});

it("bash completes after an equals sign, which it reads as a word of its own", async () => {
  const ask = (words: string): string[] => {
    const lines = `COMP_WORDS=(${words}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _sallyport; printf '%s\n' "\${COMPREPLY[@]}"`;
    return printed({ program: "bash", args: ["-c", `${text}\n${lines}`] });
  };
  const text = await script("bash");
  expect(ask("sallyport check --format =")).toEqual(["text", "json"]);
  expect(ask("sallyport check --format = j")).toEqual(["json"]);
});

it("every script knows every command, and its options", async () => {
  for (const shell of ["bash", "zsh", "fish"]) {
    const text = await script(shell);
    for (const word of ["hash-password", "selftest", "completion"]) expect(text).toContain(word);
    expect(text).toMatch(/--password-file|-l password-file/);
  }
});

it("another shell is a usage error", async () => {
  const { code, err } = await command(["completion", "csh"]);
  expect(code).toBe(2);
  expect(err).toContain("--shell must be bash or zsh or fish, not csh");
});
