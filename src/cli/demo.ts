import { randomInt } from "node:crypto";
import { listen } from "../config/fields.ts";
import { loadConfiguration } from "../config/load.ts";
import { createLogSink, type LogSink } from "../observe/log-sink.ts";
import { parseFlags } from "./arguments.ts";
import { type Command, UsageError } from "./command.ts";
import { startDemoBackend } from "./demo-backend.ts";
import { demoBanner } from "./demo-banner.ts";
import { writeDemoFiles } from "./demo-files.ts";
import { ownVersion } from "./own-version.ts";
import { runUntilStopped } from "./run-until-stopped.ts";
import { start } from "./start.ts";

const USERNAME = "demo";

export const demo: Command = {
  help: `Usage: sallyport demo [options]

Runs the proxy in front of a small backend, with a certificate, a signing key and a user made on the
spot, and prints curl lines that work when pasted into another terminal. Ctrl-C ends it.

      --listen ADDRESS:PORT        for clients (default: 127.0.0.1:8443); port 0 takes a free one
      --admin-listen ADDRESS:PORT  for metrics and health (default: 127.0.0.1:9464)
  -h, --help                       this text`,
  async run(args, terminal) {
    const address = { type: "string" } as const;
    const flags = parseFlags(args, { listen: address, "admin-listen": address });
    const { listen = "127.0.0.1:8443", "admin-listen": adminListen = "127.0.0.1:9464" } = flags;
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
    // A demo is the same everywhere: the environment has no say.
    const sources = { file: files.configuration, env: {}, overrides: {} };
    const { configuration } = loadConfiguration(sources);
    const sink = createLogSink({ format: configuration.log.format });
    const held = holdBack(sink);
    const app = await start(
      { configuration, version: ownVersion(), sink: held.sink },
      "choose another with --listen or --admin-listen",
    );
    const banner = demoBanner({
      url: `https://${host}:${app.port}`,
      adminUrl: `http://${adminHost}:${app.adminPort ?? 0}`,
      configuration: files.configuration,
      certificate: files.write("ca.pem", app.certificate ?? ""),
      username: USERNAME,
      password,
    });
    terminal.out(banner);
    held.release();
    // Closing the window of a demo is the usual end of it. The backend lives until then.
    return await runUntilStopped(app, sink, ["SIGTERM", "SIGINT", "SIGHUP"]);
  },
};

/** Keeps lines until `release`, so that they follow what is printed first. */
function holdBack(sink: LogSink): { sink: LogSink; release(): void } {
  let held: string[] | undefined = [];
  return {
    sink: {
      write: (line) => void (held === undefined ? sink.write(line) : held.push(line)),
      writeBytes: (line) =>
        void (held === undefined ? sink.writeBytes(line) : held.push(line.toString())),
      flush: () => sink.flush(),
      drain: (timeoutMs) => sink.drain(timeoutMs),
      dropped: () => sink.dropped(),
    },
    release() {
      for (const line of held ?? []) sink.write(line);
      held = undefined;
    },
  };
}

/** Addresses that the development certificate is good for, or that include one, and how they are written in a URL. */
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
  throw new UsageError(`${flag} wants a loopback address or 0.0.0.0, with a port: 127.0.0.1:8443`);
}

/** Without characters that look alike. */
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

/** 80 random bits in groups of four characters. */
function readablePassword(): string {
  const group = (): string =>
    Array.from({ length: 4 }, () => LETTERS.charAt(randomInt(LETTERS.length))).join("");
  return [group(), group(), group(), group()].join("-");
}
