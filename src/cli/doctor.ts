import { concernsOf } from "../app/concerns.ts";
import { identityHeadersOf, routesOf } from "../app/from-configuration.ts";
import type { ConfigurationSources } from "../config/load.ts";
import type { Configuration } from "../config/schema.ts";
import { ConfigError } from "../core/config-problem.ts";
import type { Route } from "../core/route.ts";
import { issuerPitfall, routePitfalls } from "../policy/pitfalls.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  durationFlag,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import { lookAtClock } from "./doctor/clock.ts";
import { bad, type Finding, type FindingGroup, good, warning } from "./doctor/finding.ts";
import { lookAtKeySets } from "./doctor/key-sets.ts";
import { lookAtListeners } from "./doctor/listeners.ts";
import { lookAtUpstreams } from "./doctor/upstreams.ts";
import { formatFrom } from "./format.ts";
import { inspect } from "./inspect.ts";
import { type Marks, marksFor } from "./marks.ts";

const TIMEOUT = "5s";

export const doctor: Command = {
  help: `Usage: sallyport doctor [options]

Does everything that check does, and looks at what is around: whether the backends and the key sets of
trusted issuers resolve, take connections and show a certificate that is trusted and lasts, whether the
ports are free, whether a running proxy is ready, the clock, and routes that leave a gap. No request goes
to a backend. Exit code 0 when nothing is bad, 1 when something is, 78 when it is the configuration.

${CONFIGURATION_HELP}
      --timeout DURATION   for each look (default: ${TIMEOUT})
      --format FORMAT   text (default) or json
  -h, --help            this text`,
  async run(args, terminal) {
    const text = { type: "string" } as const;
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, format: text, timeout: text });
    const format = formatFrom(flags.format, ["text", "json"]);
    const timeoutMs = durationFlag("timeout", flags.timeout ?? TIMEOUT, 1);
    const sources = configurationSources(flags, terminal);
    const { groups, valid } = await examine(sources, timeoutMs);
    tell(groups, format, terminal);
    if (!valid) return EXIT.configuration;
    const ill = groups.some(({ findings }) => findings.some(({ result }) => result === "bad"));
    return ill ? EXIT.failed : EXIT.done;
  },
};

async function examine(
  sources: ConfigurationSources,
  timeoutMs: number,
): Promise<{ groups: readonly FindingGroup[]; valid: boolean }> {
  const nowMs = Date.now();
  let configuration: Configuration;
  try {
    configuration = await inspect(sources);
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
  const reaching = { timeoutMs, nowMs };
  const [listeners, upstreams, keySets] = await Promise.all([
    lookAtListeners(configuration, timeoutMs),
    lookAtUpstreams(configuration, reaching),
    lookAtKeySets(configuration, reaching),
  ]);
  const groups = [
    lookAtFiles(configuration, sources.file, nowMs),
    lookAtRoutes(configuration),
    listeners,
    upstreams,
    keySets.group,
    lookAtClock(sources.file, nowMs, keySets.differences),
  ];
  return { groups, valid: true };
}

function lookAtFiles(configuration: Configuration, file: string, nowMs: number): FindingGroup {
  const concerns = concernsOf(configuration, nowMs).map(({ urgent, ...concern }) =>
    (urgent ? bad : warning)(`${concern.file}: ${concern.message}`),
  );
  const valid = good(`${file} is valid, and everything that it names can be used`);
  const others = [...keyConcerns(configuration), ...identityConcerns(configuration)];
  return { name: "configuration", findings: [valid, ...concerns, ...others] };
}

function keyConcerns({ tokens }: Configuration): Finding[] {
  if (tokens.keys !== undefined) return [];
  const hint = "set tokens.keys, see sallyport keys --help";
  return [warning("tokens end with the process that made them, which makes its own key", hint)];
}

function identityConcerns(configuration: Configuration): Finding[] {
  const { tokens, users } = configuration;
  // Without users nobody gets a token here.
  const own = users.length === 0 ? [] : [tokens.issuer];
  const issuers = [...own, ...tokens.trusted.map(({ issuer }) => issuer)];
  const pitfall = issuerPitfall(issuers, identityHeadersOf(configuration).issuer);
  return pitfall === undefined ? [] : [warning(pitfall.message, pitfall.hint)];
}

function lookAtRoutes(configuration: Configuration): FindingGroup {
  const routes = routesOf(configuration);
  const pitfalls = routePitfalls(routes).map(({ route, message, hint }) =>
    warning(`${route}: ${message}`, hint),
  );
  const watched = routes.filter(({ mode }) => mode === "monitor").map(monitorFinding);
  const findings = [...pitfalls, ...watched];
  const sound = [good("no public route takes what belongs to a protected one")];
  return { name: "routes", findings: findings.length === 0 ? sound : findings };
}

function monitorFinding({ name, path }: Route): Finding {
  const message = `${name}: in monitor mode nothing is refused`;
  if (!("prefix" in path) || path.prefix !== "/") return warning(message, "set mode: enforce");
  const hint =
    "name what must stay closed meanwhile, the backend's own /metrics or /admin say, in routes without mode: monitor";
  return warning(`${message}, on any path that no other route takes`, hint);
}

function tell(groups: readonly FindingGroup[], format: "text" | "json", terminal: Terminal): void {
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
  const told = [`${marks[result]} ${message}`];
  return hint === undefined || result === "good" ? told : [...told, `    hint: ${hint}`];
}
