/**
 * The README's way from a clone to a running proxy, walked as it is written: its shell lines run in a shell, its files are
 * written where it says. Only the ports differ, and the password is what the README's login sends.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { startChild } from "../support/child.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { readDocument, ROOT } from "./markdown.ts";

const { blocks } = readDocument("README.md");
const absent = ["curl", "openssl"].filter((tool) => spawnSync(tool, ["--help"]).error);

test.skipIf(absent.length > 0)(
  "the lines of the README work (skipped where curl or openssl is absent)",
  { timeout: 60_000 },
  async () => {
    const [prepare, start, ask] = [/hash-password$/m, / serve /, /api\/authenticate/].map(shell);
    const password = /"password":"([^"]*)"/.exec(ask ?? "")?.[1] ?? "";
    const clone = await cloneOfTheRepository();

    const prepared = await run(prepare ?? "", clone, password);
    const hash = prepared.split("\n").find((line) => line.startsWith("$argon2id$")) ?? "";
    const users = yaml("users.yaml").replace(/\$argon2id\$\S+/, () => hash);
    await writeFile(join(clone, "deployment/users.yaml"), users);
    await writeFile(join(clone, "deployment/config.yaml"), yaml("config.yaml"));

    const [check = "", serve = ""] = (start ?? "").trim().split("\n");
    expect(await run(check, clone)).toContain("is valid");

    const words = serve.replace(/^npx node src\/main\.ts /, "").split(" ");
    expect(words[0]).toBe("serve");
    const config = words.map((word) => (word.startsWith("deployment/") ? join(clone, word) : word));
    const proxy = startChild(join(ROOT, "src/main.ts"), config, {
      SALLYPORT_SERVER__LISTEN: "127.0.0.1:0",
      SALLYPORT_ADMIN__LISTEN: "127.0.0.1:0",
      SALLYPORT_SERVER__DRAIN__DELAY: "0s",
    });
    onTestFinished(() => proxy.kill());
    const ports = {
      8443: await proxy.line((line) => portIn(line, "listening")),
      9464: await proxy.line((line) => portIn(line, "admin listening")),
    };
    const lines = (ask ?? "")
      .replaceAll(/:(8443|9464)\b/g, (_all, port: "8443" | "9464") => `:${ports[port]}`)
      .replaceAll("\\\n", "")
      .trim()
      .split("\n");
    const [login = "", version = "", ready = ""] = lines;
    const { token } = JSON.parse(await run(login, clone)) as { token: string };
    expect(JSON.parse(await run(`TOKEN=${token}; ${version}`, clone))).toMatchObject({
      success: true,
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    });
    expect(await run(ready, clone)).toBe("ready\n");
  },
);

/** The one block of shell lines that holds this. */
function shell(wanted: RegExp): string {
  const found = blocks.filter(({ language, text }) => language === "sh" && wanted.test(text));
  expect(found).toHaveLength(1);
  return found[0]?.text ?? "";
}

/** The first block of this file. */
function yaml(name: string): string {
  return blocks.find(({ text }) => text.startsWith(`# ${name}\n`))?.text ?? "";
}

/** A directory that looks like one, as far as the lines reach. */
async function cloneOfTheRepository(): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const clone = join(directory.path, "sallyport");
  await mkdir(clone);
  for (const name of ["src", "node_modules", "package.json"]) {
    await symlink(join(ROOT, name), join(clone, name));
  }
  return clone;
}

/** Runs lines in a shell that ends at the first failure; gives what they print. */
async function run(lines: string, cwd: string, input = ""): Promise<string> {
  const child = spawn("sh", ["-eu", "-c", lines], { cwd });
  // Lines that read no input may end before it was written.
  child.stdin.on("error", () => undefined);
  child.stdin.end(input);
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  expect(code, err).toBe(0);
  return out;
}

function portIn(line: string, message: string): number | undefined {
  const { msg, port } = JSON.parse(line) as { msg?: string; port?: number };
  return msg === message ? port : undefined;
}
