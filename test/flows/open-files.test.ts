/** Whether the configured number of connections fits the open-file limit of the process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { expect, it, onTestFinished } from "vitest";
import { entry } from "../support/entry.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

/** Node raises the soft limit to the hard limit, so both are set. */
const ALLOWED = 600;

it.runIf(existsSync("/proc/self/limits"))(
  "is reported at startup and when the configuration changes",
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
    const logged = (msg: string) => lines.filter((line) => line["msg"] === msg);
    const TOO_LOW = "the open-file limit is too low for server.limits.connections";
    const RELOADED = "the configuration was reloaded";

    await until(() => logged("admin listening").length === 1, 25_000);
    expect(logged(TOO_LOW)).toMatchObject([{ level: "warn", allowed: ALLOWED, needed: 756 }]);
    await write(200);
    await until(() => logged(RELOADED).length > 0, 25_000);
    expect(logged(TOO_LOW)).toHaveLength(1);
    await write(201);
    await until(() => logged(TOO_LOW).length > 1, 25_000);
    expect(logged(TOO_LOW)[1]).toMatchObject({ level: "warn", allowed: ALLOWED, needed: 602 });
  },
  80_000,
);
