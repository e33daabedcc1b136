import { type StartupWarning, startupWarnings } from "../app/startup-warnings.ts";
import { inspect } from "../app/inspection.ts";
import type { ConfigurationSources } from "../config/load.ts";
import type { Snapshot } from "../config/snapshot.ts";
import { ConfigError } from "../core/config-problem.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  durationFlag,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import { checkClock } from "./doctor/clock-check.ts";
import {
  bad,
  type Examined,
  type Finding,
  type FindingGroup,
  good,
  warning,
} from "./doctor/finding.ts";
import { checkRemoteChecks } from "./doctor/remote-service-checks.ts";
import { checkKeySets } from "./doctor/key-sets.ts";
import { checkListeners } from "./doctor/listeners.ts";
import { checkUpstreams } from "./doctor/upstream-check.ts";
import { checkStateServer } from "./doctor/state-server-check.ts";
import { checkUserStores } from "./doctor/user-stores.ts";
import { formatFrom } from "./terminal/format.ts";
import { Pending, withProgress } from "./terminal/progress.ts";
import { type Marks, marksFor } from "./terminal/marks.ts";

const TIMEOUT = "5s";

export const doctor: Command = {
  help: `Usage: sallyport doctor [options]

Runs check, then examines the environment: whether the names of backends and key-set servers resolve,
whether these accept connections and have a valid certificate, whether user stores, the state server,
and introspection, TokenReview and authorization servers answer, whether the ports are free, whether a
running proxy is ready, whether the clock is right, and whether public routes bypass protected ones.
Backends get no requests except those of their health checks. Exit code 0 if no problem was found, 1 if
there is one, 78 if the configuration is invalid.

${CONFIGURATION_HELP}
      --timeout DURATION   for each step (default: ${TIMEOUT})
      --format text|json  default: text
  -h, --help            this text`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, format: text, timeout: text });
    const format = formatFrom(flags.format, ["text", "json"]);
    const timeoutMs = durationFlag("timeout", flags.timeout ?? TIMEOUT, 1);
    const sources = configurationSources(flags, terminal);
    const pending = new Pending();
    const { groups, valid } = await withProgress(
      terminal,
      () => `waiting for ${String(pending)}`,
      () => examine(sources, timeoutMs, pending),
    );
    printGroups(groups, format, terminal);
    if (!valid) return EXIT.configuration;
    const ill = groups.some(({ findings }) => findings.some(({ result }) => result === "bad"));
    return ill ? EXIT.failed : EXIT.done;
  },
};

/** What runs at the same time, with the words for what is still pending. */
const EXAMINATIONS: readonly (readonly [
  about: string,
  examination: (examined: Examined) => Promise<FindingGroup[]>,
])[] = [
  ["listeners", checkListeners],
  ["upstreams", checkUpstreams],
  ["key sets", checkKeySets],
  ["remote checks", checkRemoteChecks],
  ["user stores", checkUserStores],
  ["the state server", checkStateServer],
];

async function examine(
  sources: ConfigurationSources,
  timeoutMs: number,
  pending: Pending,
): Promise<{ groups: readonly FindingGroup[]; valid: boolean }> {
  const nowMs = Date.now();
  let snapshot: Snapshot;
  try {
    snapshot = await pending.add("the configuration", inspect(sources));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    const findings = error.problems.map(({ file, line, column, message, hint }) =>
      bad(
        [file, line, column].filter((part) => part !== undefined).join(":") + `: ${message}`,
        hint,
      ),
    );
    return { groups: [{ name: "configuration", findings }], valid: false };
  }
  const warnings = await startupWarnings(snapshot, nowMs);
  const examined: Examined = { snapshot, timeoutMs, nowMs, clocks: [] };
  const found = await Promise.all(
    EXAMINATIONS.map(([about, examination]) => pending.add(about, examination(examined))),
  );
  const groups = [
    fileFindings(warnings, sources.file),
    routeFindings(warnings),
    ...found.flat(),
    checkClock(sources.file, examined),
  ];
  return { groups, valid: true };
}

function findingOf({ file, urgent, message, hint }: StartupWarning): Finding {
  const text = file === undefined ? message : `${file}: ${message}`;
  return (urgent ? bad : warning)(text, hint);
}

function fileFindings(warnings: readonly StartupWarning[], file: string): FindingGroup {
  const valid = good(`${file} is valid, and all files that it names are usable`);
  const found = warnings.filter(({ about }) => about !== "routes").map(findingOf);
  return { name: "configuration", findings: [valid, ...found] };
}

function routeFindings(warnings: readonly StartupWarning[]): FindingGroup {
  const found = warnings.filter(({ about }) => about === "routes").map(findingOf);
  const sound = [good("no public route bypasses a protected one")];
  return { name: "routes", findings: found.length === 0 ? sound : found };
}

function printGroups(
  groups: readonly FindingGroup[],
  format: "text" | "json",
  terminal: Terminal,
): void {
  if (format === "json") {
    terminal.out(`${JSON.stringify({ groups }, undefined, 2)}\n`);
    return;
  }
  const marks = marksFor(terminal);
  const text = groups.map(({ name, findings }) =>
    [name, "-".repeat(name.length), ...findings.flatMap((each) => lines(each, marks))].join("\n"),
  );
  terminal.out(`${text.join("\n\n").replaceAll(/[^\P{C}\n]/gu, "?")}\n`);
}

function lines({ result, message, hint }: Finding, marks: Marks): string[] {
  const shown = [`${marks[result]} ${message}`];
  return hint === undefined || result === "good" ? shown : [...shown, `    hint: ${hint}`];
}
