/** `sallyport init`: the deployment it creates runs, and the commands it prints work unchanged. */
import { execFile, execFileSync, spawnSync } from "node:child_process";
import { copyFile, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
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
  const [, commands = ""] = block.split("\n\n");
  const lines = commands.split("\n").map((line) => line.slice(2));
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

it.each([
  [".gitignore", "shell"],
  ["sallyport.service", "systemd"],
  ["kustomization.yaml", "kubernetes"],
])("writes no private key where there is a %s already", async (name, runner) => {
  const directory = await emptyDirectory();
  await mkdir(directory);
  await writeFile(join(directory, name), "");
  const { code, err } = await command(["init", "-d", directory, "--for", runner]);
  expect({ code, files: await readdir(directory) }).toEqual({ code: 1, files: [name] });
  expect(err).toContain(`${join(directory, name)} already exists`);
});

it("writes nothing where a link leads nowhere", async () => {
  const directory = await emptyDirectory();
  await mkdir(directory);
  await symlink("nowhere", join(directory, "tls.key"));
  expect((await command(["init", "-d", directory])).code).toBe(1);
  expect(await readdir(directory)).toEqual(["tls.key"]);
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
  [["--admin-listen", "9464"], "--admin-listen must be ADDRESS:PORT"],
  [["--admin-listen", "0.0.0.0:8443"], "with a port of its own"],
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

/** Makes a unit where a `sallyport` is installed, unless `installed` is false. */
async function unitFor(directory: string, installed: boolean) {
  const bin = `${directory}-bin`;
  await mkdir(bin);
  // In a clone, `src/main.ts` is beside it.
  if (installed) await writeFile(join(bin, "sallyport"), "#!/bin/sh\n", { mode: 0o755 });
  const flags = ["init", "-d", directory, "--for", "systemd"];
  const { out } = await childCommand(flags, { env: { PATH: `${bin}:/usr/bin:/bin` } });
  return { bin, out, unit: await readFile(join(directory, "sallyport.service"), "utf8") };
}

it("adds a systemd unit that runs the installed program as a user of its own", async () => {
  const directory = await emptyDirectory();
  const { bin, out, unit } = await unitFor(directory, true);
  expect(unit).toContain("DynamicUser=yes\n");
  expect(unit).not.toMatch(/^User=|src\/main/m);
  expect(unit).toContain(`ExecStart="${bin}/sallyport" serve --config \${CREDENTIALS_DIRECTORY}/`);
  expect(out).toContain("systemctl enable --now sallyport");
  expect(out).not.toContain("is not installed");
  const analyze = spawnSync("systemd-analyze", ["verify", join(directory, "sallyport.service")]);
  if (analyze.error === undefined) expect(String(analyze.stderr)).toBe("");
});

it("says so if no sallyport is installed: a clone is none", async () => {
  const { out, unit } = await unitFor(await emptyDirectory(), false);
  expect(unit).toContain("ExecStart=/usr/local/bin/sallyport serve ");
  expect(out).toMatch(/^sallyport is not installed: .*npm install --global FILE\)\n$/m);
});

it("the copies that systemd hands the unit are a whole deployment", async () => {
  const directory = await emptyDirectory();
  const { unit } = await unitFor(directory, true);
  const [credentials, runtime] = [`${directory}-credentials`, `${directory}-runtime`];
  await mkdir(credentials);
  await mkdir(runtime, { mode: 0o700 });
  // As systemd.exec(5) says: of a directory, each file becomes NAME_FILE.
  for (const [, name = "", path = ""] of unit.matchAll(/^LoadCredential=([^:]+):(.*)$/gm)) {
    const files = name === "keys" ? await readdir(path) : [""];
    for (const file of files) {
      await copyFile(join(path, file), join(credentials, file === "" ? name : `${name}_${file}`));
    }
  }
  const env = { CREDENTIALS_DIRECTORY: credentials, RUNTIME_DIRECTORY: runtime };
  const [, before = ""] = /^ExecStartPre=\/bin\/sh -c '(.*)'$/m.exec(unit) ?? [];
  execFileSync("/bin/sh", ["-c", before.replaceAll("$$", "$")], {
    env: { ...process.env, ...env },
  });
  const [, key = ""] = /^Environment=(\w+)=%t\/sallyport$/m.exec(unit) ?? [];
  await rm(directory, { recursive: true });
  const checked = await command(["check", "--strict", join(credentials, "config.yaml")], {
    [key]: runtime,
  });
  expect(checked).toMatchObject({ code: 0, err: "" });
});

it.each([
  [[], "127.0.0.1:9464"],
  [["--listen", "127.0.0.1:8461"], "127.0.0.1:9464"],
  [["--listen", "[::1]:9464"], "[::1]:9465"],
  [["--admin-listen", "0.0.0.0:9000"], "0.0.0.0:9000"],
])("with %j, the admin listener is at %s", async (flags, address) => {
  const directory = await emptyDirectory();
  const { out } = await command(["init", "-d", directory, ...flags]);
  const { admin } = parse(await readFile(join(directory, "config.yaml"), "utf8")) as {
    admin: unknown;
  };
  expect(admin).toEqual({ listen: address });
  const summary = out.split("\n\n").at(-1)?.trimEnd().split("\n") ?? [];
  expect(summary.length).toBeLessThanOrEqual(5);
  expect(summary.at(-1)).toContain(`on ${address} for health, metrics and the status page`);
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
      ["port for clients", "8443"],
      ["must be ADDRESS:PORT", "127.0.0.1:8555"],
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
    await expect.poll(() => shown).toContain("on 127.0.0.1:8555 for clients");
    expect(shown).not.toContain("correct horse");
    expect(await readFile(join(directory, "users.yaml"), "utf8")).toContain('"alice":');
    expect(await readFile(join(directory, "config.yaml"), "utf8")).toContain("http://127.0.0.1:9");
  },
);
