import { once } from "node:events";
import { describe, expect, it } from "vitest";
import { readPasswordHash } from "../../src/credentials/hashing/password-hash.ts";
import { until } from "../support/until.ts";
import { childCommand, command, hasTerminal, startOnTerminal } from "./command.ts";

const PASSWORD = "correct horse battery stäple";

function fits(hash: string, password: string): boolean {
  const read = readPasswordHash(hash);
  return "matches" in read && read.matches(password);
}

const hashed = (input: string | Buffer) => command(["hash-password"], {}, input);

describe("from standard input", () => {
  it("reads the password from a pipe", async () => {
    const { code, out } = await childCommand(["hash-password"], { input: `${PASSWORD}\n` });
    expect(code).toBe(0);
    expect(fits(out.trimEnd(), PASSWORD)).toBe(true);
  });

  it.each(["", "\n", "\r\n"])("ignores one line break at the end: %j", async (end) => {
    const { code, out, err } = await hashed(PASSWORD + end);
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^\$argon2id\$v=19\$[^\n]*\n$/);
    expect(fits(out.trimEnd(), PASSWORD)).toBe(true);
    expect(fits(out.trimEnd(), `${PASSWORD}\n`)).toBe(false);
  });

  it("removes only one of two line breaks", async () => {
    const { out } = await hashed(`${PASSWORD}\n\n`);
    expect(fits(out.trimEnd(), `${PASSWORD}\n`)).toBe(true);
  });

  it("accepts 1024 bytes", async () => {
    const { code } = await hashed(`${"x".repeat(1024)}\r\n`);
    expect(code).toBe(0);
  });

  it.each([
    ["nothing", ""],
    ["an empty line", "\n"],
    ["1025 bytes", `${"secret".repeat(171)}\n`.slice(1)],
    ["a whole file", "secret".repeat(100_000)],
    ["what is no UTF-8", Buffer.from("secret\xff", "latin1")],
  ])("refuses %s and does not repeat it", async (_what, input) => {
    const { code, out, err } = await hashed(input);
    expect({ code, out }).toEqual({ code: 1, out: "" });
    expect(err).toMatch(/^sallyport hash-password: [^\n]+\n$/);
    expect(err).not.toContain("secret");
  });
});

describe.skipIf(!hasTerminal)("on a terminal (skipped without the program `script`)", () => {
  /** Types each answer once its prompt is shown. */
  async function typed(answers: readonly string[]): Promise<{ code: unknown; shown: string }> {
    const child = startOnTerminal(["hash-password"]);
    let shown = "";
    child.stdout.on("data", (chunk: Buffer) => (shown += chunk.toString()));
    const ended = once(child, "close");
    for (const [index, answer] of answers.entries()) {
      await until(() => shown.split(": ").length > index + 1);
      child.stdin.write(answer);
    }
    const [code] = await ended;
    return { code, shown };
  }

  it("prompts twice, without echo", async () => {
    const { code, shown } = await typed([`${PASSWORD}\r`, `${PASSWORD}\r`]);
    expect(code).toBe(0);
    expect(shown).not.toContain("horse");
    const hash = /\$argon2id\S+/.exec(shown)?.[0] ?? "";
    expect(fits(hash, PASSWORD)).toBe(true);
  });

  it("refuses two different passwords", async () => {
    const { code, shown } = await typed([`${PASSWORD}\r`, "another\r"]);
    expect(code).toBe(1);
    expect(shown).not.toMatch(/horse|another|argon2/);
  });

  it("stops on Ctrl-C", async () => {
    const { code, shown } = await typed(["half a pass\x03"]);
    expect(code).toBe(1);
    expect(shown).not.toMatch(/half|argon2/);
  });
});
