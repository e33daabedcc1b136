import { renderProblems } from "../config/render.ts";
import { ConfigError } from "../core/config-problem.ts";
import { nearest } from "../lib/text/nearest.ts";
import { escaped, printableLines } from "../lib/text/printable.ts";
import { type Command, EXIT, type Terminal, UsageError } from "./command.ts";

interface Row {
  /** One line for the overview. */
  readonly summary: string;
  /**
   * Imports the command and only the modules that it needs: a health check that runs every few seconds must be cheap.
   */
  load(): Promise<Command>;
}

const COMMANDS: ReadonlyMap<string, Row> = new Map<string, Row>(
  Object.entries({
    serve: {
      summary: "run the proxy",
      load: async () => (await import("./serving/serve.ts")).serve,
    },
    demo: {
      summary: "run the proxy with a demo backend, certificate, key and user",
      load: async () => (await import("@sallyport/demo")).demo,
    },
    init: {
      summary: "create a deployment: configuration, user, key and certificate",
      load: async () => (await import("@sallyport/init")).init,
    },
    migrate: {
      summary: "translate the configuration of oauth2-proxy, kube-rbac-proxy or nginx",
      async load() {
        const { createMigrate } = await import("@sallyport/migrate");
        return createMigrate((await import("./refusals.ts")).refusalsOf);
      },
    },
    check: {
      summary: "read the configuration and everything it names",
      load: async () => (await import("./check.ts")).check,
    },
    config: {
      summary: "print the effective configuration, and the origin of each value",
      load: async () => (await import("./config.ts")).config,
    },
    doctor: {
      summary: "check, then examine backends, keys, ports and clock",
      load: async () => (await import("./doctor.ts")).doctor,
    },
    explain: {
      summary: "show what would happen to a request, and why",
      load: async () => (await import("./explain.ts")).explain,
    },
    token: {
      summary: "inspect, mint or revoke tokens",
      load: async () => (await import("./token.ts")).token,
    },
    "hash-password": {
      summary: "print the hash of a password, for a users file",
      load: async () => (await import("./hash-password.ts")).hashPassword,
    },
    "api-key": {
      summary: "make an API key for a program",
      load: async () => (await import("@sallyport/api-key")).apiKey,
    },
    keys: {
      summary: "generate, list, rotate and retire signing keys",
      load: async () => (await import("@sallyport/keys")).keys,
    },
    healthcheck: {
      summary: "ask a running proxy whether it is ready",
      load: async () => (await import("./healthcheck.ts")).healthcheck,
    },
    top: {
      summary: "show the status of a running proxy",
      load: async () => (await import("@sallyport/top")).top,
    },
    status: {
      summary: "print the status of a running proxy once, in words or as JSON",
      load: async () => (await import("@sallyport/top")).status,
    },
    reload: {
      summary: "make a running proxy read its configuration again",
      load: async () => (await import("@sallyport/drain/reload")).reload,
    },
    drain: {
      summary: "drain a running proxy, and wait until it is drained",
      load: async () => (await import("@sallyport/drain")).drain,
    },
    selftest: {
      summary: "attack your own deployment, and report what fails",
      load: async () => (await import("@sallyport/selftest")).selftest,
    },
    openapi: {
      summary: "print the OpenAPI description of the proxy's own endpoints",
      load: async () => (await import("./openapi.ts")).openapi,
    },
    schema: {
      summary: "print the JSON Schema of the configuration, for editors",
      load: async () => (await import("./schema.ts")).schema,
    },
    completion: {
      summary: "print a completion script for bash, zsh or fish",
      load: async () =>
        (await import("@sallyport/completion")).createCompletion([...COMMANDS.keys()], helpOf),
    },
    version: {
      summary: "print the version of Sallyport",
      load: async () => (await import("./version.ts")).version,
    },
  }),
);

async function helpOf(name: string): Promise<string> {
  const command = await COMMANDS.get(name)?.load();
  return command?.help ?? "";
}

const ALIASES: ReadonlyMap<string, string> = new Map([
  ["--version", "version"],
  ["-v", "version"],
  ["-V", "version"],
]);

/** Commands of other programs, and sub-commands of ours, with what was probably meant. */
const MEANT: ReadonlyMap<string, string> = new Map([
  ...["run", "start", "up"].map((word) => [word, "serve"] as const),
  ...["stop", "quit", "shutdown"].map((word) => [word, "drain"] as const),
  ...["validate", "test", "lint", "configtest"].map((word) => [word, "check"] as const),
  ...["generate", "list", "rotate", "retire"].map((word) => [word, `keys ${word}`] as const),
  ...["inspect", "mint", "revoke"].map((word) => [word, `token ${word}`] as const),
  ...["password", "passwd", "htpasswd"].map((word) => [word, "hash-password"] as const),
  ...["setup", "new", "create"].map((word) => [word, "init"] as const),
  ["info", "status"],
  ["health", "healthcheck"],
]);

/** The terminal of this process. */
const ownTerminal: Terminal = {
  env: process.env,
  // Opened on first use.
  get input() {
    return process.stdin;
  },
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  async handedOver() {
    await Promise.all([written(process.stdout), written(process.stderr)]);
  },
};

/** Resolves when everything is written: a pipe buffers 64 KiB, and `process.exit` drops the rest. */
function written(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => void stream.write("", () => resolve()));
}

// A pipe that its reader has closed, as in `sallyport schema | head`, is not an error.
for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);

/**
 * Runs the command that the arguments name.
 *
 * @returns its exit code, when all of its output is written.
 */
export async function run(
  args: readonly string[],
  terminal: Terminal = ownTerminal,
): Promise<number> {
  const code = await runCommand(args, terminal);
  await terminal.handedOver();
  return code;
}

async function runCommand(args: readonly string[], terminal: Terminal): Promise<number> {
  const [first = "--help", ...rest] = args;
  if (first === "help" && rest[0] !== undefined) return runCommand([rest[0], "--help"], terminal);
  if (first === "--help" || first === "-h" || first === "help") {
    terminal.out(overview());
    return args.length === 0 ? EXIT.usage : EXIT.done;
  }
  const name = ALIASES.get(first) ?? first;
  const row = COMMANDS.get(name);
  if (row === undefined) {
    const meant = MEANT.get(name) ?? nearest(name, COMMANDS.keys());
    const question = meant === undefined ? "" : `; did you mean ${meant}?`;
    const message = `sallyport: there is no command ${escaped(JSON.stringify(name))}${question}`;
    terminal.err(`${message}\nsee sallyport --help\n`);
    return EXIT.usage;
  }
  const command = await row.load();
  if (rest.includes("--help") || rest.includes("-h")) {
    terminal.out(`${command.help}\n`);
    return EXIT.done;
  }
  try {
    return await command.run(rest, terminal);
  } catch (error) {
    return explain(error, name, terminal);
  }
}

function explain(error: unknown, name: string, terminal: Terminal): number {
  if (error instanceof UsageError) {
    const message = `sallyport ${name}: ${escaped(error.message)}`;
    terminal.err(`${message}\nsee sallyport ${name} --help\n`);
    return EXIT.usage;
  }
  if (error instanceof ConfigError) {
    const color = process.stderr.isTTY && (terminal.env["NO_COLOR"] ?? "") === "";
    terminal.err(`${renderProblems(error.problems, { color })}\n`);
    return EXIT.configuration;
  }
  const message = error instanceof Error ? error.message : String(error);
  terminal.err(`sallyport ${name}: ${printableLines(message)}\n`);
  return EXIT.failed;
}

function overview(): string {
  const width = Math.max(...[...COMMANDS.keys()].map((name) => name.length));
  const lines = [...COMMANDS].map(([name, { summary }]) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: sallyport COMMAND [options]\n\n${lines.join("\n")}\n\nRun sallyport help COMMAND for details.\n`;
}
