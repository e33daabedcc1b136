/** Completion scripts, run in the installed shells. */
import { spawnSync } from "node:child_process";
import { expect, it } from "vitest";
import { command } from "./command.ts";

async function script(shell: string): Promise<string> {
  const { code, out, err } = await command(["completion", shell]);
  expect((await command(["completion", "--shell", shell])).out).toBe(out);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return out;
}

it.each([
  ["che", 1, ["check"]],
  ["--str", 2, ["--strict"]],
])("bash completes %s", async (word, at, expected) => {
  const words = at === 1 ? ["sallyport", word] : ["sallyport", "check", word];
  const lines = `${await script("bash")}
COMP_WORDS=(${words.join(" ")}); COMP_CWORD=${at}; _sallyport; printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { status, stdout, stderr } = spawnSync("bash", ["-c", lines], { encoding: "utf8" });
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
  expect(stdout.trim().split("\n")).toEqual(expected);
});

it("zsh and fish get every command, with its options", async () => {
  for (const shell of ["zsh", "fish"]) {
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
