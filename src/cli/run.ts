import { ConfigError } from "../core/config-problem.ts";
import { renderProblems } from "../config/render.ts";
import { check } from "./check.ts";
import { type Command, EXIT, type Terminal, UsageError } from "./command.ts";
import { demo } from "./demo.ts";
import { hashPassword } from "./hash-password.ts";
import { healthcheck } from "./healthcheck.ts";
import { schema } from "./schema.ts";
import { serve } from "./serve.ts";
import { version } from "./version.ts";

const COMMANDS: readonly Command[] = [
  serve,
  demo,
  check,
  hashPassword,
  healthcheck,
  schema,
  version,
];

/** The terminal of this process. */
const ownTerminal: Terminal = {
  env: process.env,
  // Opened by the command that reads it.
  get input() {
    return process.stdin;
  },
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
};

/** @returns the exit code of the command that the arguments name. */
export async function run(
  args: readonly string[],
  terminal: Terminal = ownTerminal,
): Promise<number> {
  const [name = "--help", ...rest] = args;
  if (name === "--help" || name === "-h" || name === "help") {
    terminal.out(overview());
    return args.length === 0 ? EXIT.usage : EXIT.done;
  }
  const command = name === "--version" ? version : COMMANDS.find((each) => each.name === name);
  if (command === undefined) {
    terminal.err(`sallyport: there is no command ${JSON.stringify(name)}\n\n${overview()}`);
    return EXIT.usage;
  }
  if (rest.includes("--help") || rest.includes("-h")) {
    terminal.out(`${command.help}\n`);
    return EXIT.done;
  }
  try {
    return await command.run(rest, terminal);
  } catch (error) {
    return explain(error, command, terminal);
  }
}

function explain(error: unknown, command: Command, terminal: Terminal): number {
  if (error instanceof UsageError) {
    terminal.err(`sallyport ${command.name}: ${error.message}\n\n${command.help}\n`);
    return EXIT.usage;
  }
  if (error instanceof ConfigError) {
    const color = process.stderr.isTTY && (terminal.env["NO_COLOR"] ?? "") === "";
    terminal.err(`${renderProblems(error.problems, { color })}\n`);
    return EXIT.configuration;
  }
  terminal.err(
    `sallyport ${command.name}: ${error instanceof Error ? error.message : String(error)}\n`,
  );
  return EXIT.failed;
}

function overview(): string {
  const width = Math.max(...COMMANDS.map(({ name }) => name.length));
  const lines = COMMANDS.map(({ name, summary }) => `  ${name.padEnd(width)}  ${summary}`);
  return `Usage: sallyport COMMAND [options]\n\n${lines.join("\n")}\n\nsallyport COMMAND --help tells more.\n`;
}
