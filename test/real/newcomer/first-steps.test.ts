/**
 * A newcomer with only the machine's Node: from a clean clone to a protected backend with commands alone, without
 * editing a file; and a sidecar with one line.
 */
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFile, cp } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { expect, it, onTestFinished } from "vitest";
import { kustomized, whyNoKustomize } from "../../deploy/kubectl.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";

const ROOT = resolve(import.meta.dirname, "../../..");
/** It takes 19 s on two idle cores, 15 of them for `npm ci`. CI is neither idle nor always as fast. */
const LIMIT_MS = 120_000;

/** PATH without the directories that npm prepended, so that the machine's Node is used. */
const env = {
  ...process.env,
  PATH: (process.env["PATH"] ?? "")
    .split(":")
    .filter((directory) => !directory.includes("node_modules"))
    .join(":"),
};

/** Runs shell commands as if typed. */
async function typed(cwd: string, lines: string): Promise<string> {
  const { stdout } = await promisify(execFile)("bash", ["-euo", "pipefail", "-c", lines], {
    cwd,
    env,
    maxBuffer: 16 * 1024 ** 2,
  });
  return stdout;
}

it("protects a backend with four commands", { timeout: 2 * LIMIT_MS }, async () => {
  await using backend = await startEchoBackend();
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const clone = join(directory.path, "sallyport");
  const started = performance.now();
  await typed(directory.path, `git clone --quiet file://${ROOT} sallyport`);
  await typed(clone, "npm ci --no-audit --no-fund 2>/dev/null");
  const init = `bin/sallyport init --yes --backend ${backend.url}`;
  const said = await typed(clone, init);
  const [password = ""] = /(?<=PASSWORD=)\S+/.exec(said) ?? [];
  expect(password).not.toBe("");
  // A person would run the command that `init` printed; this one uses free ports.
  const serve = [
    "serve",
    "--config",
    "deployment/config.yaml",
    "--set",
    "admin.listen=127.0.0.1:0",
    "--set",
    "server.listen=127.0.0.1:0",
  ];
  const child = spawn(join(clone, "bin/sallyport"), serve, {
    cwd: clone,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(async () => {
    child.kill("SIGKILL");
    await once(child, "close");
  });
  const port = await new Promise<number>((done) => {
    createInterface({ input: child.stdout }).on("line", (line) => {
      const { msg, port: found } = JSON.parse(line) as { msg: string; port?: number };
      if (msg === "listening" && found !== undefined) done(found);
    });
  });
  const at = `https://localhost:${port}`;
  const answer = await typed(
    clone,
    `ask() { curl -sS --cacert deployment/tls.crt "$@"; }
TOKEN=$(ask -H 'Content-Type: application/json' -d '{"username":"admin","password":"${password}"}' ${at}/api/authenticate | sed 's/.*"token":"\\([^"]*\\)".*/\\1/')
ask -H "Authorization: Bearer $TOKEN" ${at}/orders
ask -o /dev/null -w '\\n%{http_code}' ${at}/orders`,
  );
  const took = performance.now() - started;
  expect(answer).toContain("admin");
  expect(answer).toMatch(/\n401$/);
  expect(backend.requests.at(-1)?.url).toBe("/orders");
  expect(await typed(clone, "git status --porcelain")).toBe("");
  expect(took).toBeLessThan(LIMIT_MS);
  process.stdout.write(`a newcomer took ${Math.round(took / 1000)} s\n`);
});

it.skipIf(whyNoKustomize() !== undefined)(
  "adds the sidecar to a Deployment with one line",
  async () => {
    await using directory = await temporaryDirectory();
    await cp(join(ROOT, "deploy/kubernetes"), directory.path, { recursive: true });
    const sample = join(directory.path, "sample");
    expect(await kustomized(sample)).not.toContain("name: sallyport\n");
    await appendFile(join(sample, "kustomization.yaml"), "components: [../sidecar]\n");
    const built = await kustomized(sample);
    expect(built).toMatch(/initContainers:[^]*name: sallyport\n/);
    expect(built).toMatch(/kind: Deployment/);
  },
);
