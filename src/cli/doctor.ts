import { statSync } from "node:fs";
import type { StartupWarning } from "../app/startup-warnings.ts";
import type { ConfigurationSources } from "../config/load.ts";
import { type ConfigProblem, placeOf } from "../core/config-problem.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  durationFlag,
  parseFlags,
} from "./arguments.ts";
import { checkFiles } from "./check.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import {
  bad,
  type ClockDifference,
  type Examined,
  type Finding,
  good,
  skipped,
  warning,
} from "./doctor/finding.ts";
import { checkProviders, checkRemoteChecks } from "./doctor/remote-service-checks.ts";
import { checkDecisions, checkListeners, checkRunning } from "./doctor/listeners.ts";
import { checkUpstreams } from "./doctor/upstream-check.ts";
import { checkKeyStores, checkUserStores, storeHint } from "./doctor/user-stores.ts";
import { formatFrom, type Marks, marksFor } from "./terminal/format.ts";
import { Pending, withProgress } from "./terminal/progress.ts";
import { formatSeconds } from "../lib/text/duration.ts";
import { isKeyed } from "../app/gate/remote-checks.ts";
import { readJwkSet } from "../tokens/keys/key-set.ts";
import { KeySetServer } from "../tokens/trusted/key-set-server.ts";
import type { KeySetAddress, TrustedIssuer } from "../tokens/trusted/trusted-keys.ts";
import { remoteFailure } from "../lib/text/error-code.ts";
import { originOf } from "../upstream/pool/target-origin.ts";
import { reach, type TlsHints } from "./doctor/reach.ts";
import { statePlaceOf } from "../app/sharing.ts";
import { examineStateServer } from "../shared/examine.ts";
import type { StoreHint } from "../credentials/stores/user-store.ts";

/** Tolerated difference, in milliseconds: the `Date` of a response has whole seconds, and the response takes time. */
const TOLERATED_MS = 5_000;
/** The tolerance for `iat` between replicas, and the default tolerance for trusted issuers, in milliseconds. */
const TOO_MUCH_MS = 60_000;

/**
 * Compares the clock of this machine with the modification time of the configuration file and with the clocks of other
 * machines.
 */
function checkClock(file: string, { nowMs, clocks }: Examined): Finding[] {
  const ahead = statSync(file).mtimeMs - nowMs;
  return [
    ahead > TOO_MUCH_MS
      ? bad(`the configuration was written ${formatSeconds(ahead)} in the future`, HINT)
      : good("not before the configuration was written"),
    ...(clocks.length === 0 ? [skipped("no other clock was reachable")] : clocks.map(difference)),
  ];
}

function difference({ server, behindMs }: ClockDifference): Finding {
  const apart = Math.abs(behindMs);
  const message = `${formatSeconds(apart)} ${behindMs > 0 ? "behind" : "ahead of"} ${server}`;
  if (apart <= TOLERATED_MS) return good(`agrees with ${server}`);
  return (apart > TOO_MUCH_MS ? bad : warning)(message, HINT);
}

const HINT = "Sallyport accepts tokens too long, or refuses valid ones: set the clock by NTP";

const HINTS: TlsHints = {
  authority:
    "set tokens.trusted[].jwks.caFile, or start with NODE_EXTRA_CA_CERTS=FILE, to the certificate of its authority",
  name: "the certificate does not match the name in tokens.trusted[].jwks.url",
  client: "does it require a client certificate? Sallyport cannot present one to fetch a key set",
};

/** Checks the key sets of all trusted issuers concurrently. */
async function checkKeySets(examined: Examined): Promise<Finding[]> {
  const { configuration, files } = examined.snapshot;
  const looks = configuration.tokens.trusted.filter(isKeyed).map(async (trusted) => {
    const { issuer, jwks } = trusted;
    if ("file" in jwks) return [good(`${issuer}: ${jwks.file} contains keys`)];
    const { origin } = new URL(jwks.url ?? issuer);
    const { caFile } = jwks;
    const tls = caFile === undefined ? undefined : { ca: files.text(caFile) };
    const [findings, fetched] = await Promise.all([
      reach(issuer, originOf(origin, tls), { ...examined, hints: HINTS }),
      fetchKeys(trusted, jwks, origin, examined),
    ]);
    return [...findings, fetched];
  });
  const findings = (await Promise.all(looks)).flat();
  return findings.length === 0 ? [skipped("no other issuer is trusted")] : findings;
}

async function fetchKeys(
  { issuer, algorithms }: TrustedIssuer,
  address: KeySetAddress,
  origin: string,
  { timeoutMs, clocks }: Examined,
): Promise<Finding> {
  const server = new KeySetServer(issuer, address);
  try {
    const fetched = await server.fetch(AbortSignal.timeout(timeoutMs));
    const behindMs = Date.parse(fetched.date ?? "") - Date.now();
    if (!Number.isNaN(behindMs)) clocks.push({ server: origin, behindMs });
    const { keys, ignored } = readJwkSet(fetched.text, algorithms);
    if (keys.length === 0) {
      const hint = `check tokens.trusted[].algorithms; ${ignored.length} keys were ignored`;
      return bad(`${issuer}: its key set has no usable key`, hint);
    }
    const message = `${issuer}: ${keys.length} keys, ${ignored.length} ignored`;
    return ignored.length === 0 ? good(message) : warning(message);
  } catch (error) {
    const hint = "Sallyport cannot accept tokens of this issuer until this works";
    return bad(`${issuer}: its key set is unavailable (${remoteFailure(error)})`, hint);
  } finally {
    server.close();
  }
}

/** What an operator can do about an error of Redis or a sentinel. */
const REDIS_HINTS: readonly StoreHint[] = [
  [
    /^(?:WRONGPASS|NOAUTH)/,
    "check the user in `url` and `password`; sentinels use `sentinel.password`",
  ],
  [/^NOPERM/, "give the ACL user the permissions in docs/scale.md, for the keys with `prefix`"],
  [/^MOVED/, "set `cluster: true`"],
  [/^READONLY/, "`url` names a replica: name the primary, or set `sentinel`"],
  [/^OOM/, "its memory is full: raise maxmemory"],
  [/^MISCONF/, "it cannot write to its disk, and accepts no writes until it can"],
  [/knows no primary/, "compare `sentinel.name` with the output of `SENTINEL masters`"],
];

/**
 * Checks the server of `shared` in the same way as a replica uses it: connection, TLS, credentials, permissions and
 * latency.
 */
async function checkStateServer({ snapshot, timeoutMs }: Examined): Promise<Finding[]> {
  const { configuration, files } = snapshot;
  const { shared } = configuration;
  if (shared === undefined) return [];
  const report = await examineStateServer(statePlaceOf(shared, files), shared.prefix, timeoutMs);
  const { problem, answerMs = 0, version = "the server", address, eviction } = report;
  const where = address === undefined ? version : `${version} at ${address}`;
  const findings: Finding[] = [];
  if (problem !== undefined) {
    const hint = storeHint(problem, REDIS_HINTS, "see docs/scale.md");
    findings.push(bad(`redis: cannot be used: ${problem}`, hint));
  } else if (answerMs > shared.timeout) {
    const message = `redis: ${where} takes ${Math.round(answerMs)} ms to answer`;
    findings.push(warning(message, "shared.timeout is shorter, so a logout does not wait for it"));
  } else {
    findings.push(good(`redis: ${where} answers in ${Math.ceil(answerMs)} ms`));
  }
  if (eviction !== undefined && eviction !== "noeviction") {
    const message = `redis: with maxmemory-policy ${eviction}, it may lose revocations`;
    findings.push(warning(message, "set maxmemory-policy noeviction"));
  }
  return findings;
}

const TIMEOUT = "5s";

export const doctor: Command = {
  help: `Usage: sallyport doctor [options]

Runs check, then examines the environment: whether the names of backends and key-set servers resolve,
whether these accept connections and have a valid certificate, whether user stores, tables of API keys,
the state server, and introspection, TokenReview and authorization servers answer, whether the ports are
free, whether a running proxy is ready and answers the question of another proxy, whether the clock is
right, and whether public routes bypass protected ones.
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
    const groups = await withProgress(
      terminal,
      () => `waiting for ${String(pending)}`,
      () => examine(sources, timeoutMs, pending),
    );
    printGroups(groups, format, terminal);
    // Of a configuration that is not valid, nothing else is examined.
    if (groups.length === 1) return EXIT.configuration;
    const ill = groups.some(({ findings }) => findings.some(({ result }) => result === "bad"));
    return ill ? EXIT.failed : EXIT.done;
  },
};

/** What `check` leaves out, by the name of its group. All run at the same time; a group without findings is not shown. */
const EXAMINATIONS: Readonly<Record<string, (examined: Examined) => Promise<Finding[]>>> = {
  listeners: checkListeners,
  "the running proxy": checkRunning,
  decisions: checkDecisions,
  upstreams: checkUpstreams,
  "trusted key sets": checkKeySets,
  "remote checks": checkRemoteChecks,
  "sign-in providers": checkProviders,
  "user stores": checkUserStores,
  "API keys": checkKeyStores,
  "state server": checkStateServer,
};

type FindingGroups = readonly { readonly name: string; readonly findings: readonly Finding[] }[];

async function examine(
  sources: ConfigurationSources,
  timeoutMs: number,
  pending: Pending,
): Promise<FindingGroups> {
  const nowMs = Date.now();
  const { problems, snapshot, warnings } = await pending.add(
    "the configuration",
    checkFiles(sources),
  );
  if (snapshot === undefined) return [{ name: "configuration", findings: problems.map(fault) }];
  const examined: Examined = { snapshot, timeoutMs, nowMs, clocks: [] };
  const found = Object.entries(EXAMINATIONS).map(async ([name, examination]) => ({
    name,
    findings: await pending.add(name, examination(examined)),
  }));
  const valid = good(`${sources.file} is valid, and all files that it names are usable`);
  const ofFiles = warnings.filter(({ about }) => about !== "routes").map(findingOf);
  const ofRoutes = warnings.filter(({ about }) => about === "routes").map(findingOf);
  const sound = [good("no public route bypasses a protected one")];
  const network = (await Promise.all(found)).filter(({ findings }) => findings.length > 0);
  return [
    { name: "configuration", findings: [valid, ...ofFiles] },
    { name: "routes", findings: ofRoutes.length === 0 ? sound : ofRoutes },
    ...network,
    { name: "clock", findings: checkClock(sources.file, examined) },
  ];
}

function fault(problem: ConfigProblem): Finding {
  return bad(`${placeOf(problem)}: ${problem.message}`, problem.hint);
}

function findingOf({ file, urgent, message, hint }: StartupWarning): Finding {
  const text = file === undefined ? message : `${file}: ${message}`;
  return (urgent ? bad : warning)(text, hint);
}

function printGroups(groups: FindingGroups, format: "text" | "json", terminal: Terminal): void {
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
