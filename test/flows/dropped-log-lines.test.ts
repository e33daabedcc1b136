/** Log lines that nothing reads are counted, whichever thread writes them. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { deployment } from "../cli/deployment.ts";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { entry } from "../support/entry.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const REQUESTS = 12;
const METRIC = "sallyport_log_lines_dropped_total";

it.each([1, 2])("the reader of the log goes away: %i worker(s)", async (workers) => {
  const { flags } = await deployment();
  const listening = ["server.listen=127.0.0.1:0", "admin.listen=127.0.0.1:0"];
  // No keys are fetched, so that only requests write log lines.
  const routes = 'routes=[{ name: app, path: "/", upstream: app }]';
  const settings = [...listening, "tokens.trusted=[]", routes, "log.format=json"];
  const child = spawn(
    process.execPath,
    [
      ...[entry(), "serve", ...flags],
      ...[...settings, `server.workers=${workers}`].flatMap((setting) => ["--set", setting]),
    ],
    {
      env: { ...process.env, SALLYPORT_ENTRY: undefined },
      stdio: ["ignore", "pipe", "inherit"],
    },
  );
  onTestFinished(async () => {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  });
  const ports = new Map<string, number>();
  for await (const line of createInterface({ input: child.stdout })) {
    const { msg, port } = JSON.parse(line) as { msg: string; port?: number };
    if (port !== undefined) ports.set(msg, port);
    if (msg === "admin listening") break;
  }
  const { ca } = await testCertificates();
  const gate = { port: ports.get("listening") ?? 0, ca };
  const admin = { adminPort: ports.get("admin listening") ?? 0 };
  const dropped = async (): Promise<number | undefined> => (await scrape(admin)).value(METRIC);
  expect(await dropped()).toBe(0);

  child.stdout.destroy();
  await once(child.stdout, "close");
  const answers = await Promise.all(Array.from({ length: REQUESTS }, () => ask(gate, "/orders")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
  await until(async () => ((await dropped()) ?? 0) >= REQUESTS, 10_000);
  // On a busy machine, each thread may also log a warning about a throttled client.
  expect(await dropped()).toBeLessThanOrEqual(REQUESTS + 2);
});
