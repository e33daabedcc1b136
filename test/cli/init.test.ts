/** `sallyport init`: the deployment it creates runs, and the commands it prints work unchanged. */
import { execFile, spawnSync } from "node:child_process";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { parse } from "yaml";
import { startChild } from "../support/child.ts";
import { freePort } from "../support/dead-ends.ts";
import { entry } from "../support/entry.ts";
import { listeningPort } from "../support/listening-port.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { childCommand, command, hasTerminal, startOnTerminal } from "./command.ts";

async function emptyDirectory(): Promise<string> {
  const temporary = await temporaryDirectory();
  onTestFinished(() => temporary.close());
  return join(temporary.path, "new one");
}

/** Runs the indented lines below a title in a shell, and returns the output. */
async function pasted(out: string, title: string, cwd: string): Promise<string> {
  const [, block = ""] = out.split(title);
  const lines = block
    .split("\n")
    .slice(2)
    .map((line) => line.slice(2));
  // The backend lives in this process, so this must not block.
  const run = await promisify(execFile)("bash", ["-ec", lines.join("\n")], { cwd });
  expect(run.stderr).toBe("");
  return run.stdout;
}

it("creates a working deployment, and prints commands that log in and call the backend", async () => {
  const backend = createServer((request, response) => {
    response.end(`hello ${String(request.headers["x-auth-subject"])}`);
  });
  await new Promise<void>((resolve) => void backend.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void backend.close());
  const directory = await emptyDirectory();
  const port = await freePort();
  const { code, out, err } = await childCommand([
    ...["init", "--directory", directory, "--listen", `127.0.0.1:${port}`],
    ...["--backend", `http://127.0.0.1:${listeningPort(backend)}`],
  ]);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const checked = await childCommand(["check", "--config", join(directory, "config.yaml")]);
  expect({ code: checked.code, err: checked.err }).toEqual({ code: 0, err: "" });

  const proxy = startChild(entry(), ["serve", "--config", join(directory, "config.yaml")], {
    SALLYPORT_ADMIN__LISTEN: "127.0.0.1:0",
  });
  onTestFinished(() => proxy.kill());
  await proxy.line((line) => (line.includes('"listening"') ? line : undefined));
  expect(await pasted(out, "in another terminal:", directory)).toBe("hello admin");
});

it("creates files that only their owner can read, and that Git ignores", async () => {
  const directory = await emptyDirectory();
  expect((await command(["init", "-d", directory])).code).toBe(0);
  for (const name of await readdir(directory, { recursive: true })) {
    expect((await stat(join(directory, name))).mode & 0o077).toBe(0);
  }
  spawnSync("git", ["init", "-q"], { cwd: directory });
  const added = spawnSync("git", ["status", "--porcelain", "-uall"], {
    cwd: directory,
    encoding: "utf8",
  });
  expect(added.stdout).toBe("");
});

it("overwrites nothing", async () => {
  const directory = await emptyDirectory();
  await command(["init", "-d", directory]);
  const before = await readFile(join(directory, "users.yaml"), "utf8");
  const { code, err } = await command(["init", "-d", directory]);
  expect(code).toBe(1);
  expect(err).toContain(`${join(directory, "config.yaml")} already exists`);
  expect(await readFile(join(directory, "users.yaml"), "utf8")).toBe(before);
});

it("takes a password from a file, and does not print it", async () => {
  const directory = await emptyDirectory();
  const file = `${directory}.password`;
  await writeFile(file, "correct horse battery staple\n");
  const { code, out } = await command(["init", "-d", directory, "--password-file", file]);
  expect(code).toBe(0);
  expect(out).not.toContain("horse");
  expect(out).toContain("read -rs PASSWORD");
});

it.each([
  [["--backend", "localhost:8080"], "--backend must be http://HOST:PORT"],
  [["--backend", "http://127.0.0.1:8080/path"], "--backend must be http://HOST:PORT"],
  [["--host", "https://example.com"], "--host must be a host name"],
  [["--username", 'a"b'], "--username must be letters"],
  [["--listen", "8443"], "--listen must be ADDRESS:PORT"],
  [["--browser", "firefox"], "--browser must be yes or no"],
  [["--for", "docker"], "--for must be shell, systemd or kubernetes"],
  [["--usernam", "x"], "did you mean --username?"],
])("refuses %j", async (flags, message) => {
  const directory = await emptyDirectory();
  const { code, err } = await command(["init", "-d", directory, ...flags]);
  expect(code).toBe(2);
  expect(err).toContain(message);
});

it("lets people sign in with a browser, if they do", async () => {
  const directory = await emptyDirectory();
  const { out } = await command(["init", "-d", directory, "--browser", "yes"]);
  expect(out).toContain("Open https://localhost:8443/ in a browser, and sign in as admin.");
  const flags = ["--config", join(directory, "config.yaml"), "--format", "json"];
  const shown = await command(["config", ...flags]);
  expect(shown.out).toContain("__Host-sallyport");
  const plain = await emptyDirectory();
  await command(["init", "-d", plain]);
  expect(await readFile(join(plain, "config.yaml"), "utf8")).not.toContain("browser:");
});

it("adds a systemd unit that runs this program", async () => {
  const directory = await emptyDirectory();
  const { out } = await command(["init", "-d", directory, "--for", "systemd"]);
  const unit = await readFile(join(directory, "sallyport.service"), "utf8");
  expect(unit).toContain(`ExecStart=${process.execPath} `);
  expect(unit).toContain(` serve --config "${join(directory, "config.yaml")}"\n`);
  expect(out).toContain("systemctl enable --now sallyport");
});

it("adds a kustomization with the Secrets that the component mounts", async () => {
  const directory = await emptyDirectory();
  await command(["init", "-d", directory, "--for", "kubernetes"]);
  const kustomization: unknown = parse(
    await readFile(join(directory, "kustomization.yaml"), "utf8"),
  );
  const pod = await readFile("deploy/kubernetes/sidecar/pod.yaml", "utf8");
  const { secretGenerator } = kustomization as {
    secretGenerator: { name: string; files: string[] }[];
  };
  expect(secretGenerator.map(({ name }) => name)).toEqual([
    "sallyport-users",
    "sallyport-tls",
    "sallyport-keys",
  ]);
  for (const { name, files } of secretGenerator) {
    expect(pod).toContain(name);
    for (const file of files) await stat(join(directory, file));
  }
});

it.skipIf(!hasTerminal)(
  "prompts on a terminal, and repeats a prompt after an invalid answer",
  async () => {
    const directory = await emptyDirectory();
    const child = startOnTerminal(["init", "--directory", directory]);
    let shown = "";
    child.stdout.on("data", (chunk: Buffer) => void (shown += chunk.toString("utf8")));
    const answers = [
      ["backend to protect", "8080"],
      ["must be http", "http://127.0.0.1:9"],
      ["that clients use", ""],
      ["first user", "alice"],
      ["with a browser", ""],
      ["Run by", ""],
      ["Password: ", "correct horse"],
      ["Again: ", "correct horse"],
    ] as const;
    for (const [question, answer] of answers) {
      await expect.poll(() => shown, { timeout: 10_000 }).toContain(question);
      child.stdin.write(`${answer}\r`);
    }
    await expect.poll(() => shown, { timeout: 10_000 }).toContain("Run it:");
    expect(shown).not.toContain("correct horse");
    expect(await readFile(join(directory, "users.yaml"), "utf8")).toContain('"alice":');
    expect(await readFile(join(directory, "config.yaml"), "utf8")).toContain("http://127.0.0.1:9");
  },
);
