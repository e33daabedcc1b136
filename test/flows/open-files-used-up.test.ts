/** What a request gets when the proxy has no file descriptor left: a reason of its own, since no backend is at fault. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir } from "node:fs/promises";
import { Agent } from "node:http";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { type Answer, ask } from "../support/ask.ts";
import { entry } from "../support/entry.ts";
import { startHoldingBackend } from "../support/holding-backend.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

/** Node raises the soft limit to the hard limit, so both are set. */
const ALLOWED = 150;
/** File descriptors left when all clients are connected. */
const LEFT = 12;

it.runIf(existsSync("/proc/self/fd"))(
  "a request without a file descriptor for its connection gets 503, and no target is ejected",
  async () => {
    const backends = [await startHoldingBackend(), await startHoldingBackend()];
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.close());
    const config = {
      server: { listen: "127.0.0.1:0", tls: "off", limits: { connectionsPerAddress: 500 } },
      admin: { listen: "127.0.0.1:0" },
      upstreams: { app: { targets: backends.map(({ url }) => url), ejection: { failures: 1 } } },
      routes: [{ name: "open", path: "/", upstream: "app", auth: "none" }],
      log: { format: "json" },
    };
    const file = await directory.write("config.yaml", JSON.stringify(config));
    const serve = [process.execPath, entry(), "serve", "--config", file];
    const child = spawn("sh", ["-c", `ulimit -n ${ALLOWED} && exec "$0" "$@"`, ...serve], {
      env: { ...process.env, SALLYPORT_ENTRY: undefined },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "close");
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await ended;
      await Promise.all(backends.map((each) => each[Symbol.asyncDispose]()));
    });
    const lines: Record<string, unknown>[] = [];
    createInterface(child.stdout).on("line", (line) => void lines.push(JSON.parse(line)));
    const portOf = (msg: string) => Number(lines.find((line) => line["msg"] === msg)?.["port"]);
    await until(() => portOf("listening") > 0 && portOf("admin listening") > 0, 25_000);
    const gate = { port: portOf("listening"), adminPort: portOf("admin listening") };
    const filesOpen = async () => (await readdir(`/proc/${child.pid}/fd`)).length;
    const clients = ALLOWED - (await filesOpen()) - LEFT;

    const agent = new Agent({ keepAlive: true, maxSockets: clients });
    onTestFinished(() => agent.destroy());
    // All clients connect before the first request goes to a backend: this path is answered without one.
    const greetings = Array.from({ length: clients }, () => ask(gate, "/api/version", { agent }));
    for (const { status } of await Promise.all(greetings)) expect(status).toBe(401);

    const refused: Answer[] = [];
    const answers = Array.from({ length: clients }, async (_, index) => {
      const answer = await ask(gate, `/hold/${index}`, { agent });
      if (answer.status !== 200) refused.push(answer);
    });
    const held = () =>
      backends.flatMap((backend) => backend.held().map((path) => ({ backend, path })));
    await until(() => held().length + refused.length === clients, 25_000);
    const served = held();
    expect(served.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(clients / 2);
    for (const { status, headers, body } of refused) {
      expect(status).toBe(503);
      expect(headers).toMatchObject({
        "retry-after": "1",
        "proxy-status": "sallyport; error=proxy_internal_error",
      });
      expect(body).toContain('"message":"The proxy has no connection left, try again"');
    }
    for (const { backend, path } of served) backend.release(path);
    await Promise.all(answers);
    agent.destroy();

    // While no file descriptor is left, Node accepts connections only to close them.
    await until(async () => (await filesOpen()) < ALLOWED - LEFT);
    // Both targets serve immediately, and the pools have room again.
    await until(async () => (await ask(gate, "/after")).status === 200);
    for (let i = 0; i < 4; i += 1) expect((await ask(gate, "/after")).status).toBe(200);
    const failed = lines.filter(({ reason }) => reason === "resource_exhausted");
    expect(failed).toHaveLength(refused.length);
    expect(lines.filter(({ msg }) => msg === "a target is left out")).toEqual([]);
    const page = await scrape(gate);
    const reason = 'reason="resource_exhausted"';
    expect(page.sum("sallyport_upstream_errors_total", reason)).toBe(refused.length);
  },
  80_000,
);
