import { once } from "node:events";
import { createServer } from "node:net";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { listen } from "../../src/config/fields.ts";
import { takeSnapshot } from "../../src/config/snapshot.ts";
import { createLogSink, type LogSink } from "../../src/observe/log/log-sink.ts";
import { parseFlags } from "../../src/cli/arguments.ts";
import { type Command, UsageError } from "../../src/cli/command.ts";
import { startDemoBackend } from "./demo-backend.ts";
import { ownVersion } from "../../src/cli/version.ts";
import { readablePassword } from "../../src/cli/terminal/prompt.ts";
import { LastExit, runUntilStopped, start, StopSignal } from "../../src/cli/serving/serve.ts";
import { shellWord } from "../../src/lib/text/printable.ts";
import { hashPassword } from "../../src/credentials/hashing/new-hash.ts";

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
      {
        snapshot,
        version: ownVersion(),
        sink: held.sink,
        read: (inForce) => takeSnapshot(sources, inForce),
      },
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
      losing: () => sink.losing(),
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

export interface DemoFacts {
  /** `https://127.0.0.1:8443` */
  readonly url: string;
  readonly adminUrl: string;
  readonly configuration: string;
  /** Path of the certificate file, PEM. */
  readonly certificate: string;
  readonly username: string;
  readonly password: string;
  /** Whether the terminal shows titles in bold. */
  readonly color: boolean;
}

/**
 * Returns the first output of the demo: addresses, files and the password, and commands to paste into another terminal,
 * each short enough for one or two rows.
 */
export function demoBanner(facts: DemoFacts): string {
  const { url, adminUrl, configuration, username, password, color } = facts;
  const bold = (title: string): string => (color ? `\u001B[1m${title}\u001B[22m` : title);
  const credentials = shellWord(JSON.stringify({ username, password }));
  const ask = `curl -sS --cacert ${shellWord(facts.certificate)} "$@"`;
  const login = `ask -H 'Content-Type: application/json' -d ${credentials} ${url}/api/authenticate`;
  const withToken = `ask -H "Authorization: Bearer $TOKEN"`;
  const examples = [
    ["Define these first:", `ask() { ${ask}; }\n  login() { ${login}; }`],
    ["Log in:", "login; echo"],
    [
      "Log in and keep the token:",
      String.raw`TOKEN=$(login | sed 's/.*"token":"\([^"]*\)".*/\1/')`,
    ],
    ["Call the backend, which gets your identity:", `${withToken} '${url}/orders?page=2'`],
    ["The version of the API:", `${withToken} ${url}/api/v1/version; echo`],
    ["Without a token, 401:", `ask -i ${url}/orders; echo`],
    [`A route for a group that ${username} is not in, 403:`, `${withToken} -i ${url}/admin/; echo`],
    ["A public route:", `ask ${url}/public/welcome`],
    ["Server-sent events, as they happen:", `${withToken} -N '${url}/events?count=3'`],
    ["Check whether it is ready:", `curl -sS ${adminUrl}/readyz; echo`],
  ].map(([title = "", line = ""]) => `${bold(title)}\n  ${line}\n`);
  return `${bold("Sallyport runs in front of a small demo backend.")}

  address        ${url}
  metrics        ${adminUrl}/metrics
  configuration  ${configuration}
  user           ${username}
  password       ${password}

Lines to paste into another terminal:

${examples.join("\n")}
Ctrl-C ends the demo and removes its files.

`;
}

export interface DemoSettings {
  /** `127.0.0.1:8443` */
  readonly listen: string;
  readonly adminListen: string;
  readonly username: string;
  readonly password: string;
  readonly backend: string;
}

/** A private directory that is removed when this process exits. */
export interface DemoFiles {
  readonly directory: string;
  readonly configuration: string;
  /** Writes another file and returns its path. */
  write(name: string, content: string): string;
}

/** Writes the files that a deployment provides: the configuration and the users. */
export function writeDemoFiles(settings: DemoSettings): DemoFiles {
  const hash = hashPassword(settings.password);
  // mkdtemp uses mode 0700.
  const directory = mkdtempSync(join(tmpdir(), "sallyport-demo-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const write = (name: string, content: string): string => {
    const file = join(directory, name);
    writeFileSync(file, content, { mode: 0o600 });
    return file;
  };
  write("users.yaml", users(settings.username, hash));
  return { directory, configuration: write("config.yaml", configuration(settings)), write };
}

function users(username: string, hash: string): string {
  return `users:
  ${username}:
    password: ${hash}
    groups: [visitors]
`;
}

function configuration({ listen, adminListen, backend }: DemoSettings): string {
  return `server:
  listen: "${listen}"
  tls: { selfSigned: true }
  limits: { connections: 1000 }
  drain: { delay: 0s, timeout: 5s }

admin:
  listen: "${adminListen}"

users:
  - { kind: file, path: users.yaml }

routes:
  - { name: public, path: /public/, auth: none, upstream: backend }
  - { name: admins, path: /admin/, require: { groups: { any: [admins] } }, upstream: backend }
  - { name: everything, path: /, upstream: backend }

upstreams:
  backend: { targets: ["${backend}"] }
`;
}
