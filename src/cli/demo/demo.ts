import { once } from "node:events";
import { createServer } from "node:net";
import { listen } from "../../config/schema/fields.ts";
import { takeSnapshot } from "../../config/snapshot.ts";
import { createLogSink, type LogSink } from "../../observe/log/log-sink.ts";
import { parseFlags } from "../arguments.ts";
import { type Command, UsageError } from "../command.ts";
import { startDemoBackend } from "./demo-backend.ts";
import { demoBanner } from "./demo-banner.ts";
import { writeDemoFiles } from "./demo-files.ts";
import { ownVersion } from "../version.ts";
import { readablePassword } from "../terminal/readable-password.ts";
import { LastExit } from "../serving/last-exit.ts";
import { runUntilStopped } from "../serving/run-until-stopped.ts";
import { start } from "../serving/start.ts";
import { StopSignal } from "../serving/stop-signal.ts";

const USERNAME = "demo";

export const demo: Command = {
  help: `Usage: sallyport demo [options]

Runs the proxy in front of a small backend, with a temporary certificate, signing key and user, and
prints curl lines to paste into another terminal. Ctrl-C ends it.

      --listen ADDRESS:PORT        for clients (default: 127.0.0.1:8443, or any free port if that is taken)
      --admin-listen ADDRESS:PORT  for metrics and health (default: 127.0.0.1:9464, likewise)
  -h, --help                       this text`,
  async run(args, terminal) {
    // Users often end a demo by closing its window, which sends SIGHUP.
    const stop = new StopSignal(["SIGTERM", "SIGINT", "SIGHUP"]);
    const exit = new LastExit();
    const address = { type: "string" } as const;
    const flags = parseFlags(args, { listen: address, "admin-listen": address });
    const listen = flags.listen ?? (await freeAddress(8443));
    const adminListen = flags["admin-listen"] ?? (await freeAddress(9464));
    const host = reachableHost("--listen", listen);
    const adminHost = reachableHost("--admin-listen", adminListen);

    const password = readablePassword();
    await using backend = await startDemoBackend();
    const files = writeDemoFiles({
      listen,
      adminListen,
      username: USERNAME,
      password,
      backend: backend.url,
    });
    // The demo ignores the environment, so that it works the same everywhere.
    const sources = { file: files.configuration, env: {}, overrides: {} };
    const snapshot = await takeSnapshot(sources);
    const sink = createLogSink({ format: snapshot.configuration.log.format });
    const held = holdBack(sink);
    const app = await start(
      { snapshot, version: ownVersion(), sink: held.sink },
      "choose another with --listen or --admin-listen",
    );
    const banner = demoBanner({
      url: `https://${host}:${app.port}`,
      adminUrl: `http://${adminHost}:${app.adminPort ?? 0}`,
      configuration: files.configuration,
      certificate: files.write("ca.pem", app.certificate ?? ""),
      username: USERNAME,
      password,
      color: process.stdout.isTTY && (terminal.env["NO_COLOR"] ?? "") === "",
    });
    terminal.out(banner);
    held.release();
    // `await` keeps the backend running until then.
    return await runUntilStopped(app, sink, exit, stop);
  },
};

/** Holds lines back until `release`, so that they follow the banner. */
function holdBack(sink: LogSink): { sink: LogSink; release(): void } {
  let held: string[] | undefined = [];
  return {
    sink: {
      write: (line) => void (held === undefined ? sink.write(line) : held.push(line)),
      writeBytes: (line) =>
        void (held === undefined ? sink.writeBytes(line) : held.push(line.toString())),
      flush: () => sink.flush(),
      drain: (timeoutMs) => sink.drain(timeoutMs),
      countLost: (lines) => sink.countLost(lines),
      dropped: () => sink.dropped(),
    },
    release() {
      for (const line of held ?? []) sink.write(line);
      held = undefined;
    },
  };
}

/**
 * Listen addresses that the development certificate covers, or that include such an address, with the host of the URL.
 */
const HOSTS = new Map([
  ["127.0.0.1", "127.0.0.1"],
  ["0.0.0.0", "127.0.0.1"],
  ["localhost", "localhost"],
  ["::1", "[::1]"],
  ["::", "[::1]"],
]);

function reachableHost(flag: string, text: string): string {
  const parsed = listen().safeParse(text);
  const host = parsed.success ? HOSTS.get(parsed.data.host) : undefined;
  if (host !== undefined) return host;
  throw new UsageError(`${flag} needs a loopback address or 0.0.0.0, with a port: 127.0.0.1:8443`);
}

/** Returns an address on 127.0.0.1 with this port, or with any free port if another program listens there. */
export async function freeAddress(port: number): Promise<string> {
  const probe = createServer().listen(port, "127.0.0.1");
  try {
    await once(probe, "listening");
    return `127.0.0.1:${port}`;
  } catch {
    return "127.0.0.1:0";
  } finally {
    probe.close();
  }
}
