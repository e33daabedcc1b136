/** SIGTERM ends the process within `drain.delay` plus `drain.timeout` plus 2 s, whatever hangs. */
import { argon2Sync, randomBytes } from "node:crypto";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ask, askLogin } from "../../support/ask.ts";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { misbehave, misbehaveInMain, MISBEHAVING } from "../../support/misbehaving.ts";
import { namedPipe } from "../../support/named-pipe.ts";
import { startHoldingBackend } from "../../support/holding-backend.ts";
import { resourcesOf } from "../../support/proxy-resources.ts";
import {
  ALICE,
  cheapHash,
  type ConfigParts,
  startSallyport,
  type Sallyport,
} from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

/** The default sum of `drain.delay` and `drain.timeout` in these tests. */
const DRAIN_MS = 600;
/** The documented time on top of that. */
const PROMISED_MS = 2_000;
/** Slack for a busy machine, for delivering the signal and noticing the exit. */
const SLACK_MS = 3_000;

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

interface Parts {
  readonly server?: ConfigParts;
  readonly env?: Record<string, string>;
  readonly files?: Record<string, string>;
}

function start({ server = {}, env = {}, files = {} }: Parts = {}): Promise<Sallyport> {
  const drain = { delay: "300ms", timeout: "300ms" };
  return startSallyport({
    target: backend.url,
    config: { server: { drain, ...server } },
    env: { ...MISBEHAVING, ...env },
    files,
  });
}

/** Sends SIGTERM, then calls `then`. @returns the exit code or signal. Fails if it takes too long. */
async function ended(
  gate: Sallyport,
  drainMs = DRAIN_MS,
  then: () => unknown = () => undefined,
): Promise<number | NodeJS.Signals> {
  const began = performance.now();
  gate.signal("SIGTERM");
  await then();
  const code = await gate.exit;
  expect(performance.now() - began).toBeLessThan(drainMs + PROMISED_MS + SLACK_MS);
  return code;
}

it("ends with a worker that hangs", async () => {
  await using gate = await start({ server: { workers: 2 } });
  await misbehave(gate, "hang");
  expect(await ended(gate)).toBe(0);
}, 60_000);

it("ends with a worker that is stuck in a system call", async () => {
  await using gate = await start({ server: { workers: 2 } });
  await misbehave(gate, `open ${await namedPipe(join(gate.directory, "pipe"))}`);
  expect(await ended(gate)).toBe("SIGKILL");
}, 60_000);

it("ends with a main thread that hangs during the drain", async () => {
  await using gate = await start({ server: { drain: { delay: "6s", timeout: "300ms" } } });
  const hang = async (): Promise<void> => {
    await until(() => gate.log().some(({ msg }) => msg === "asked to stop"));
    await misbehaveInMain(gate, "hang");
  };
  expect(await ended(gate, 6_300, hang)).toBe("SIGKILL");
}, 60_000);

it("ends with storage that does not respond", async () => {
  await using gate = await start();
  await misbehaveInMain(gate, `read ${await namedPipe(join(gate.directory, "pipe"))}`);
  expect(await ended(gate)).toBe("SIGKILL");
}, 60_000);

it("ends on a second signal with storage that does not respond", async () => {
  await using gate = await start({ server: { drain: { delay: "60s", timeout: "60s" } } });
  await misbehaveInMain(gate, `read ${await namedPipe(join(gate.directory, "pipe"))}`);
  expect(await ended(gate, 0, () => gate.signal("SIGINT"))).toBe("SIGKILL");
}, 60_000);

it("ends during a password hash that takes longer", async () => {
  const nonce = randomBytes(16);
  const cost = { memory: 128 * 1024, passes: 32, parallelism: 1 };
  const salt = nonce.toString("base64").replaceAll("=", "");
  const tag = argon2Sync("argon2id", {
    message: "x",
    nonce,
    tagLength: 32,
    ...cost,
    memory: 8,
    passes: 1,
  })
    .toString("base64")
    .replaceAll("=", "");
  const users = {
    [ALICE.username]: { password: cheapHash(ALICE.password) },
    slow: { password: `$argon2id$v=19$m=${cost.memory},t=${cost.passes},p=1$${salt}$${tag}` },
  };
  await using gate = await start({ files: { "users.yaml": JSON.stringify({ users }) } });
  const { residentBytes } = await resourcesOf(gate);
  const before = await residentBytes();
  const login = askLogin(gate, { username: "slow", password: "x" }).catch(() => undefined);
  // The hash uses its memory while it is computed.
  await until(async () => (await residentBytes()) > before + 64 * 1024 * 1024);
  expect([0, "SIGKILL"]).toContain(await ended(gate));
  await login;
}, 60_000);

it("ends with a trace collector that never answers", async () => {
  await using collector = await startHoldingBackend();
  await using gate = await start({
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/hold/` },
  });
  expect(await ended(gate)).toBe(0);
}, 60_000);

it("ends during a reload that waits for a hung worker", async () => {
  await using gate = await start({ server: { workers: 2 } });
  await misbehave(gate, "hang");
  const file = join(gate.directory, "config.yaml");
  await writeFile(file, (await readFile(file, "utf8")).replaceAll("/public/", "/open/"));
  let answered = false;
  const reloaded = reload(gate).then(() => (answered = true));
  // This later request is answered after the reload has started.
  await ask({ port: gate.adminPort }, "/livez");
  expect(answered).toBe(false);
  expect(await ended(gate)).toBe(0);
  await reloaded;
}, 60_000);

it("ends during a reload with a hung thread that reads users", async () => {
  await using gate = await start({ env: { STANDING_THREAD: "users" } });
  // Large enough to be read in a separate thread.
  const padding = "#".repeat(100_000);
  const file = join(gate.directory, "users.yaml");
  await writeFile(file, `${await readFile(file, "utf8")}\n${padding}\n`);
  const reloaded = reload(gate);
  await until(async () => (await threadNames(gate)).includes("users"));
  expect(await ended(gate)).toBe(0);
  expect(await reloaded).toBe(false);
}, 60_000);

it.each([1, 2])(
  "ends when nothing reads the log any more: %i worker(s)",
  async (workers) => {
    await using gate = await start({ server: { workers } });
    gate.pauseLog();
    // More than the pipe and the reading stream can buffer.
    const path = `/public/${"x".repeat(15_000)}`;
    const asked = Array.from({ length: 200 }, () => ask(gate, path));
    expect(new Set((await Promise.all(asked)).map(({ status }) => status))).toEqual(new Set([200]));
    expect(await ended(gate)).toBe(0);
    const written = gate.log().filter((line) => line["path"] === path);
    expect(written.length).toBeLessThan(asked.length);
  },
  60_000,
);

/** Requests a reload. @returns whether it was answered. */
function reload({ adminPort }: Sallyport): Promise<boolean> {
  return ask({ port: adminPort }, "/-/reload", { method: "POST" }).then(
    () => true,
    () => false,
  );
}

/** Returns the thread names from /proc (proc(5)). */
async function threadNames({ pid }: Sallyport): Promise<string[]> {
  const tasks = await readdir(`/proc/${pid}/task`);
  const names = tasks.map((task) => readFile(`/proc/${pid}/task/${task}/comm`, "utf8"));
  return (await Promise.all(names)).map((name) => name.trim());
}
