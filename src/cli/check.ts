import { type Concern, concernsOf } from "../app/concerns.ts";
import { routesOf } from "../app/from-configuration.ts";
import type { Configuration } from "../config/schema.ts";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import type { Route } from "../core/route.ts";
import { systemClock } from "../lib/clock.ts";
import { bySpecificity } from "../policy/route-table.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import { formatFrom } from "./format.ts";
import { inspect } from "./inspect.ts";

export const check: Command = {
  help: `Usage: sallyport check [options]

Reads the configuration and everything that it names: users, certificates, keys. Tells everything that
is wrong at once (exit code 78), or the routes in the order in which they are tried and what should be
seen to, such as a certificate that ends soon (exit code 0).

${CONFIGURATION_HELP}
      --format FORMAT   text (default) or json
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, format: { type: "string" } });
    const format = formatFrom(flags.format, ["text", "json"]);
    const sources = configurationSources(flags, terminal);
    if (format === "json") return printJson(inspect(sources), terminal);
    const configuration = await inspect(sources);
    terminal.out(`${sources.file} is valid.\n\nRoutes, the first that fits is taken:\n`);
    terminal.out(table(orderOf(configuration)));
    for (const { file, message } of concernsOf(configuration, systemClock.now())) {
      terminal.out(`\nwarning: ${file}: ${message}\n`);
    }
    return EXIT.done;
  },
};

function orderOf(configuration: Configuration): Route[] {
  return bySpecificity(routesOf(configuration));
}

async function printJson(inspected: Promise<Configuration>, terminal: Terminal): Promise<number> {
  const print = (
    problems: readonly ConfigProblem[],
    routes: readonly Route[],
    warnings: readonly Concern[],
  ): void => {
    // The line itself is for the caret on a terminal.
    const told = problems.map(({ source: _line, ...problem }) => problem);
    const verdict = { valid: problems.length === 0, problems: told, warnings, routes };
    terminal.out(`${JSON.stringify(verdict, undefined, 2)}\n`);
  };
  try {
    const configuration = await inspected;
    print([], orderOf(configuration), concernsOf(configuration, systemClock.now()));
    return EXIT.done;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    print(error.problems, [], []);
    return EXIT.configuration;
  }
}

/** One line for each route, in columns. */
function table(routes: readonly Route[]): string {
  const rows = routes.map((route) => [
    route.name,
    route.hosts?.join(",") ?? "any host",
    "exact" in route.path ? `=${route.path.exact}` : route.path.prefix,
    route.methods?.join(",") ?? "any method",
    needs(route),
    `to ${route.upstream}`,
  ]);
  const width = (column: number): number =>
    Math.max(...rows.map((row) => row[column]?.length ?? 0));
  const line = (row: readonly string[]): string =>
    `  ${row.map((cell, column) => cell.padEnd(width(column))).join("  ")}`.trimEnd();
  return rows.map((row) => `${line(row)}\n`).join("");
}

function needs({ auth, groups, mode }: Route): string {
  if (auth === "none") return "public";
  const watched = mode === "monitor" ? ", only watched" : "";
  const any = groups?.any === undefined ? "" : ` and one group of ${groups.any.join(",")}`;
  const all = groups?.all === undefined ? "" : ` and every group of ${groups.all.join(",")}`;
  return `token${any}${all}${watched}`;
}
