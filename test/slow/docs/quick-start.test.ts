/**
 * Follows `docs/quick-start.md` literally: runs its shell commands, writes its files to their documented paths, and
 * compares the responses with its table. Only the ports differ, and the password is the one that its login sends.
 */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, onTestFinished, test } from "vitest";
import { startChild } from "../../support/child.ts";
import { readDocument, ROOT } from "../../docs/markdown.ts";
import { cloneOfTheRepository, runLines } from "../../docs/shell-lines.ts";

const document = readDocument("docs/quick-start.md");
const absent = ["curl", "openssl"].filter((tool) => spawnSync(tool, ["--help"]).error);

test.skipIf(absent.length > 0)(
  "the commands of the quick start work (skipped without curl or openssl)",
  { timeout: 60_000 },
  async () => {
    const shell = document.blocks.filter(({ language }) => language === "sh");
    expect(shell).toHaveLength(9);
    const [path = "", init = "", ...byHand] = shell.map(({ text }) => text);
    const [backend = "", prepare = "", check = "", serve = "", ask = "", look = "", attack = ""] =
      byHand;
    const made = await runLines(path + init, await cloneOfTheRepository());
    expect(made).toContain("Made in deployment: config.yaml, users.yaml,");
    // Takes some seconds, and is tested in test/slow/cli.
    expect(attack).toMatch(/selftest .*--ca deployment\/tls\.crt/);
    const password = /"password":"([^"]*)"/.exec(ask)?.[1] ?? "";
    const clone = await cloneOfTheRepository();
    const target = `http://127.0.0.1:${await startBackend(backend, clone)}`;

    const prepared = await runLines(path + prepare, clone, password);
    const hash = prepared.split("\n").find((line) => line.startsWith("$argon2id$")) ?? "";
    const users = yaml("users.yaml").replace(/\$argon2id\$\S+/, () => hash);
    await writeFile(join(clone, "deployment/users.yaml"), users);
    await writeFile(join(clone, "deployment/config.yaml"), yaml("config.yaml"));
    const verdict = await runLines(path + check, clone);
    expect(verdict).toContain("is valid");
    expect(verdict).not.toContain("warning");

    const words = /^sallyport (serve --config )(\S+)$/m.exec(serve);
    expect(words).not.toBeNull();
    const proxy = startChild(
      join(ROOT, "src/main.ts"),
      ["serve", "--config", join(clone, words?.[2] ?? "")],
      {
        SALLYPORT_SERVER__LISTEN: "127.0.0.1:0",
        SALLYPORT_ADMIN__LISTEN: "127.0.0.1:0",
        SALLYPORT_UPSTREAMS__APP__TARGETS: JSON.stringify([target]),
      },
    );
    onTestFinished(() => proxy.kill());
    const port = await proxy.line((line) => portIn(line, "listening"));
    const adminPort = await proxy.line((line) => portIn(line, "admin listening"));
    const lines = (path + ask + look)
      .replaceAll(":8443", `:${port}`)
      .replaceAll(":9464", `:${adminPort}`);

    const answers = await runLines(lines, clone);
    const [first = "", ...rest] = answers.split("\n").filter((line) => line !== "");
    expect(first).toMatch(/"success":false\}$/);
    expect(rest.slice(0, 5)).toEqual([
      "401",
      "GET /docs/intro from nobody ()",
      "200",
      "GET /orders from alice (sales)",
      "200",
    ]);
    expect(rest[5]).toMatch(/"success":false\}$/);
    expect(rest.slice(6, 8)).toEqual(["403", "ready"]);
    expect(answers).toContain("everything");
    expect(JSON.parse(rest.at(-1) ?? "")).toMatchObject({
      success: true,
      version: expect.stringMatching(/^\d+\.\d+\.\d+$/),
    });
    const told = document.rows("request", "response").map((row) => row["response"]?.slice(0, 3));
    expect(told).toEqual(["401", "200", "200", "403"]);
  },
);

/** Returns the YAML block with this file name. */
function yaml(name: string): string {
  return document.blocks.find(({ text }) => text.startsWith(`# ${name}\n`))?.text ?? "";
}

/** Starts the backend of the document on a free port. */
async function startBackend(lines: string, cwd: string): Promise<number> {
  const listening = '.listen(8080, "127.0.0.1")';
  expect(lines).toContain(listening);
  const anywhere =
    '.listen(0, "127.0.0.1", function () { console.log(String(this.address().port)); })';
  // With `exec`, so that the signal reaches the backend and not its shell.
  const command = lines.replace("npx node", `exec ${process.execPath}`);
  const child = spawn("sh", ["-eu", "-c", command.replace(listening, anywhere)], {
    cwd,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: child.stdout }), "line");
  return Number(line);
}

function portIn(line: string, message: string): number | undefined {
  const { msg, port } = JSON.parse(line) as { msg?: string; port?: number };
  return msg === message ? port : undefined;
}
