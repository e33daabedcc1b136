import { adminAddress, askAdmin, membersIn } from "../../src/cli/admin-address.ts";
import { CONFIGURATION_FLAGS, CONFIGURATION_HELP, parseFlags } from "../../src/cli/arguments.ts";
import { type Command, EXIT, type Terminal } from "../../src/cli/command.ts";
import { formatFrom } from "../../src/cli/terminal/format.ts";
import { printable } from "../../src/lib/text/printable.ts";

const PATH = "/-/reload";
/** A reload waits for one that is running already. */
const TIMEOUT_MS = 30_000;

export const reload: Command = {
  help: `Usage: sallyport reload [options]

Makes a running proxy read its configuration and all files again, as SIGHUP does, and prints what changed.
Exit code 1 if the configuration cannot be used: the one before stays in force, and the problems are
printed. A proxy follows its files by itself: use this to be sure, or to see the result. The command
connects to the address of admin.listen; without a configuration file, to 127.0.0.1:9464.

${CONFIGURATION_HELP}
      --url URL         connects there and reads no configuration, such as http://127.0.0.1:9464
      --format text|json  default: text
  -h, --help            this text`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, url: text, format: text });
    const format = formatFrom(flags.format, ["text", "json"]);
    const { url } = await adminAddress(flags, terminal, PATH);
    const late = `${url.href} did not answer within ${TIMEOUT_MS / 1000} s`;
    const response = await askAdmin(url, { method: "POST", timeoutMs: TIMEOUT_MS, late });
    const { statusCode = 0 } = response;
    const answer = await membersIn(response);
    const { message } = answer;
    if (typeof message !== "string") throw new Error(`${url.href} says ${statusCode}`);
    if (format === "json") terminal.out(`${JSON.stringify(answer, undefined, 2)}\n`);
    else print(message, answer, statusCode === 200 ? terminal.out : terminal.err);
    return statusCode === 200 ? EXIT.done : EXIT.failed;
  },
};

const LISTS = {
  problems: "",
  changed: "changed: ",
  files: "read again: ",
  needRestart: "waits for a restart: ",
} as const;

function print(message: string, answer: Record<string, unknown>, write: Terminal["out"]): void {
  write(`${printable(message)}\n`);
  for (const [name, words] of Object.entries(LISTS)) {
    const list = answer[name];
    for (const each of Array.isArray(list) ? list : []) {
      write(`  ${words}${printable(typeof each === "string" ? each : JSON.stringify(each))}\n`);
    }
  }
}
