/** Whether the connections that are configured fit into the files that the process may open. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { entry } from "../support/entry.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

/** Node raises the soft limit to the hard one, so both are set. */
const ALLOWED = 600;

it.runIf(existsSync("/proc/self/limits"))(
  "is told of at start and when the configuration changes",
  async () => {
    const directory = await temporaryDirectory();
    onTestFinished(() => directory.close());
    const write = (connections: number): Promise<string> =>
      directory.write(
        "config.yaml",
        JSON.stringify({
          server: { listen: "127.0.0.1:0", tls: "off", limits: { connections } },
          admin: { listen: "127.0.0.1:0" },
          upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
          log: { format: "json" },
        }),
      );
    const serve = [process.execPath, entry(), "serve", "--config", await write(300)];
    const child = spawn("sh", ["-c", `ulimit -n ${ALLOWED} && exec "$0" "$@"`, ...serve], {
      env: { ...process.env, SALLYPORT_ENTRY: undefined },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const ended = once(child, "close");
    onTestFinished(async () => {
      child.kill("SIGKILL");
      await ended;
    });
    const lines: Record<string, unknown>[] = [];
    createInterface(child.stdout).on("line", (line) => void lines.push(JSON.parse(line)));
    const told = (msg: string) => lines.filter((line) => line["msg"] === msg);
    const FEW = "the open-file limit is too low for server.limits.connections";
    const RELOADED = "the configuration was reloaded";

    await until(() => told("admin listening").length === 1, 25_000);
    expect(told(FEW)).toMatchObject([{ level: "warn", allowed: ALLOWED, needed: 800 }]);
    await write(200);
    await until(() => told(RELOADED).length > 0, 25_000);
    expect(told(FEW)).toHaveLength(1);
    await write(201);
    await until(() => told(FEW).length > 1, 25_000);
    expect(told(FEW)[1]).toMatchObject({ level: "warn", allowed: ALLOWED, needed: 602 });
  },
  80_000,
);
