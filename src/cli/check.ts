import { setTimeout as sleep } from "node:timers/promises";
import { type StartupWarning, startupWarnings } from "../app/startup-warnings.ts";
import { routesOf } from "../app/gate/from-configuration.ts";
import { inspect } from "../app/inspection.ts";
import { renderProblems } from "../config/render.ts";
import type { ConfigurationSources } from "../config/load.ts";
import type { Snapshot } from "../config/snapshot.ts";
import { ConfigError, type ConfigProblem, withoutSource } from "../core/config-problem.ts";
import { pathWords, type Route } from "../core/route/route.ts";
import { systemClock } from "../lib/clock.ts";
import { bySpecificity } from "../policy/route-table.ts";
import { accessPolicyWords } from "../policy/authorize.ts";
import { NOWHERE } from "../config/sections/routes/routes-section.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
  wordAs,
} from "./arguments.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import { columns, formatFrom } from "./terminal/format.ts";

const FLAGS = {
  ...CONFIGURATION_FLAGS,
  format: { type: "string" },
  strict: { type: "boolean" },
  watch: { type: "boolean" },
} as const;

export const check: Command = {
  help: `Usage: sallyport check [FILE] [options]

Reads the configuration and every file that it names: users, certificates, keys. Prints all errors at
once (exit code 78), or the routes in the order in which they are tried, and warnings, for example about
a certificate that expires soon (exit code 0).

${CONFIGURATION_HELP}
      --strict          fails on warnings, too (exit code 1)
      --watch           repeats the checks and prints the result whenever it changes, until Ctrl-C
      --format text|json  default: text
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(wordAs("config", args, FLAGS), FLAGS);
    const format = formatFrom(flags.format, ["text", "json"]);
    const sources = configurationSources(flags, terminal);
    const report = (checked: CheckedFiles): string =>
      format === "json" ? jsonReport(checked) : textReport(checked, sources.file);
    if (flags.watch === true) return watch(async () => report(await checkFiles(sources)), terminal);
    const checked = await checkFiles(sources);
    terminal.out(report(checked));
    if (checked.problems.length > 0) return EXIT.configuration;
    return flags.strict === true && checked.warnings.length > 0 ? EXIT.failed : EXIT.done;
  },
};

/** What is known without the network. */
interface CheckedFiles {
  readonly problems: readonly ConfigProblem[];
  /** Undefined if there are problems. */
  readonly snapshot?: Snapshot;
  readonly warnings: readonly StartupWarning[];
}

/** Checks the configuration, and every file that it names: `doctor` begins with the same. */
export async function checkFiles(sources: ConfigurationSources): Promise<CheckedFiles> {
  try {
    const snapshot = await inspect(sources);
    return { problems: [], snapshot, warnings: await startupWarnings(snapshot, systemClock.now()) };
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return { problems: error.problems, warnings: [] };
  }
}

/** @throws ConfigError for a configuration that is not valid. */
function textReport(checked: CheckedFiles, name: string): string {
  const { problems, warnings } = checked;
  if (problems.length > 0) throw new ConfigError(problems);
  return [
    `${name} is valid.

Routes, in matching order:
`,
    table(routesIn(checked)),
    ...warnings.map(({ file, message, hint }) => {
      const position = file === undefined ? "" : `${file}: `;
      return `\nwarning: ${position}${message}\n${hint === undefined ? "" : `  ${hint}\n`}`;
    }),
  ].join("");
}

function routesIn({ snapshot }: CheckedFiles): Route[] {
  return snapshot === undefined ? [] : bySpecificity(routesOf(snapshot.configuration));
}

function jsonReport(checked: CheckedFiles): string {
  const { problems, warnings } = checked;
  const verdict = {
    valid: problems.length === 0,
    // Only terminals show the source line.
    problems: problems.map(withoutSource),
    warnings: warnings.map(({ loggedElsewhere: _forTheLog, ...warning }) => warning),
    routes: routesIn(checked).map(({ require, ...route }) => ({ ...route, ...require })),
  };
  return `${JSON.stringify(verdict, undefined, 2)}\n`;
}

/** The interval of `--watch`, in milliseconds. */
const WATCH_MS = 500;

/** Prints the report again whenever it changes, until SIGINT. */
async function watch(report: () => Promise<string>, terminal: Terminal): Promise<number> {
  const interrupted = new AbortController();
  process.once("SIGINT", () => interrupted.abort());
  let last: string | undefined;
  while (!interrupted.signal.aborted) {
    const text = await report().catch((error: unknown) => {
      if (!(error instanceof ConfigError)) throw error;
      return `${renderProblems(error.problems, { color: false })}\n`;
    });
    if (text !== last) terminal.out(last === undefined ? text : `\n${"-".repeat(40)}\n${text}`);
    last = text;
    await sleep(WATCH_MS, undefined, { signal: interrupted.signal }).catch(() => undefined);
  }
  return EXIT.done;
}

/** Renders one line for each route, in columns. */
function table(routes: readonly Route[]): string {
  const rows = routes.map((route) => [
    route.name,
    route.hosts?.join(",") ?? "any host",
    pathWords(route.path),
    route.methods?.join(",") ?? "any method",
    accessPolicyWords(route),
    route.upstream === NOWHERE ? "decided only" : `to ${route.upstream}`,
  ]);
  return columns(rows)
    .map((line) => `  ${line}\n`)
    .join("");
}
