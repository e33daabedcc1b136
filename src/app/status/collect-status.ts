import { isIPv6 } from "node:net";
import { hostname } from "node:os";
import { setImmediate as turn } from "node:timers/promises";
import { X509Certificate } from "node:crypto";
import { routeRow } from "../../config/sections/routes/route-row.ts";
import type { DryRunRequest, Explanation } from "../../core/explanation.ts";
import type { RecentEvents, RefusalExplanation, Status, StatusReload } from "../../core/status.ts";
import { mergeEvents, quantileOf } from "../../observe/recent/recent-log.ts";
import type { ReloadStates } from "../reload/reload-states.ts";
import type { LastReload } from "../reload/reloader.ts";
import type { AdminSubject } from "../admin-listener.ts";
import type { Service } from "../service.ts";
import { dependenciesOf } from "./dependencies.ts";
import { routesOf, workersOf } from "../gate/from-configuration.ts";
import type { MetricObjects } from "../../observe/metrics/series.ts";
import type { Configuration } from "../../config/configuration.ts";
import { shellWord } from "../../lib/text/printable.ts";
import { accessPolicyWords } from "../../policy/authorize.ts";
import { createDryRunRequest, ExplainQueryError } from "../../server/admin/explain-page.ts";
import { pathWords } from "../../core/route/route.ts";
import type { TargetState } from "../../upstream/pool/target.ts";
import { bySpecificity } from "../../policy/route-table.ts";
import { type KeyRing, stateOf } from "../../tokens/keys/key-ring.ts";
import { reachState } from "../../upstream/pool/health-check.ts";

interface Samples {
  readonly name: string;
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string | number>>;
    readonly value: number;
  }[];
}

function hasSamples(metric: object): metric is Samples {
  return "name" in metric && "values" in metric && Array.isArray(metric.values);
}

/**
 * Returns the sum of the samples of a metric that have these labels; 0 if there are none.
 *
 * @param codeClass 4 for those whose status code is 400 to 499.
 */
type Counted = (
  name: string,
  labels?: Readonly<Record<string, string>>,
  codeClass?: number,
) => number;

function countedIn(metrics: MetricObjects): Counted {
  const known = new Map(metrics.filter(hasSamples).map(({ name, values }) => [name, values]));
  return (name, wanted = {}, codeClass) =>
    (known.get(`sallyport_${name}`) ?? [])
      .filter(({ labels }) =>
        Object.entries(wanted).every(([label, value]) => labels[label] === value),
      )
      .filter(({ labels }) => !codeClass || Math.floor(Number(labels["code"]) / 100) === codeClass)
      .reduce((sum, { value }) => sum + value, 0);
}

type Explain = (request: DryRunRequest) => Promise<Explanation>;

/** Maximum number of routes to list before the one that matched. */
const MAX_ROUTES = 12;

/**
 * Explains refusals with dry runs: one for each group of equal requests, and only one per turn of the event loop, so
 * that clients do not have to wait.
 */
async function explainRefusals(
  refusals: RecentEvents["refusals"],
  configuration: Configuration,
  explain: Explain,
): Promise<Status["refusals"][number][]> {
  const known = new Map<string, RefusalExplanation | undefined>();
  const explained: Status["refusals"][number][] = [];
  for (const refusal of refusals) {
    const { method, host, path, client, protocol } = refusal;
    const key = JSON.stringify([method, host, path, client, protocol]);
    if (!known.has(key)) {
      known.set(key, await explanationOf(refusal, configuration, explain));
      await turn();
    }
    explained.push({ ...refusal, explanation: known.get(key) });
  }
  return explained;
}

const UPGRADE = ["Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13"];

async function explanationOf(
  refusal: RecentEvents["refusals"][number],
  configuration: Configuration,
  explain: Explain,
): Promise<RefusalExplanation | undefined> {
  const { method, host, path, client, protocol } = refusal;
  if (method === "" || path === "") return undefined;
  const scheme = configuration.server.tls.mode === "off" ? "http" : "https";
  const url = `${scheme}://${host || "localhost"}${path}`;
  const headers = protocol === "websocket" ? UPGRADE : [];
  try {
    const asked = { method, url, headers, peer: client };
    const { verdict, routes, notes } = await explain(createDryRunRequest(asked));
    const route = configuration.routes.find(({ name }) => name === verdict.route);
    const options = [
      ...(method === "GET" ? [] : ["--method", method]),
      "--url",
      url,
      "--client",
      client,
      ...headers.flatMap((header) => ["--header", header]),
    ];
    return {
      verdict,
      notes,
      routes: routes.filter(({ result }) => result !== "not tried").slice(-MAX_ROUTES),
      access: route && accessPolicyWords(routeRow(route, configuration.server.limits)),
      command: `sallyport explain ${options.map(shellWord).join(" ")} --token-file FILE`,
    };
  } catch (error) {
    if (error instanceof ExplainQueryError) return undefined;
    throw error;
  }
}

const REQUESTS = "http_requests_total";

function latencyIn(counts: readonly number[] = []): Status["routes"][number]["latency"] {
  return { p50: quantileOf(counts, 0.5), p99: quantileOf(counts, 0.99) };
}

function routesIn(
  configuration: Configuration,
  counted: Counted,
  { routes }: RecentEvents["durations"],
): Status["routes"] {
  return bySpecificity(routesOf(configuration)).map((route) => ({
    name: route.name,
    hosts: route.hosts,
    path: pathWords(route.path),
    methods: route.methods,
    access: accessPolicyWords(route),
    upstream: route.upstream,
    requests: counted(REQUESTS, { route: route.name }),
    clientErrors: counted(REQUESTS, { route: route.name }, 4),
    serverErrors: counted(REQUESTS, { route: route.name }, 5),
    latency: latencyIn(routes.get(route.name)),
  }));
}

/** Checks whether each target accepts a connection; with `resolve`, each address of a name. */
function upstreamsIn(
  { upstreams }: Configuration,
  counted: Counted,
  known: readonly TargetState[],
  durations: RecentEvents["durations"],
): Promise<Status["upstreams"]> {
  return Promise.all(
    Object.entries(upstreams).map(async ([name, { targets, resolve }]) => ({
      name,
      inFlight: counted("upstream_requests_in_flight", { upstream: name }),
      waiting: counted("upstream_queue_length", { upstream: name }),
      targets: await statesOf(
        targets,
        known.filter(({ upstream }) => upstream === name),
        resolve !== undefined,
        (target) => latencyIn(durations.targets.get(`${name} ${target}`)),
      ),
    })),
  );
}

type StatusTarget = Status["upstreams"][number]["targets"][number];

/** @param known the targets that the threads report; empty while no name has an address, or no thread answers. */
async function statesOf(
  configured: readonly string[],
  known: readonly TargetState[],
  areNames: boolean,
  latencyOf: (target: string) => StatusTarget["latency"],
): Promise<readonly StatusTarget[]> {
  if (known.length === 0 && areNames) {
    const nothing = { reachable: false, state: "no address", oldestMs: 0 };
    return configured.map((address) => ({ address, ...nothing, latency: latencyIn() }));
  }
  const all =
    known.length > 0
      ? known
      : configured.map((target) => ({ target, state: "available" as const, oldestMs: 0 }));
  return Promise.all(
    all.map(async ({ target: address, state, oldestMs }) => {
      const reached = await reachState(address);
      const reachable = reached === "ok";
      const seen = reachable && state !== "available" ? state : reached;
      return { address, reachable, state: seen, oldestMs, latency: latencyOf(address) };
    }),
  );
}

function certificateIn(text: string | undefined): Status["certificate"] {
  if (text === undefined) return undefined;
  const { subject, issuer, subjectAltName, validToDate } = new X509Certificate(text);
  const line = (name: string): string => name.replaceAll("\n", ", ");
  return {
    subject: line(subject),
    issuer: line(issuer),
    names: namesIn(subjectAltName),
    notAfter: validToDate.getTime(),
  };
}

/** Returns the names of a certificate, with IPv6 addresses as they are usually written (RFC 5952). */
function namesIn(subjectAltName = ""): string {
  return subjectAltName
    .split(", ")
    .map((name) => {
      const [kind, address] = name.split(/:(.*)/s);
      if (kind !== "IP Address" || address === undefined || !isIPv6(address)) return name;
      return `IP Address:${new URL(`http://[${address}]`).hostname.slice(1, -1)}`;
    })
    .join(", ");
}

/** Returns the keys without their key material. */
function keysIn(
  ring: KeyRing,
  signs: Status["keys"][number]["signs"],
  now: number,
): Status["keys"] {
  return ring.map((key) => ({
    signs,
    kid: key.kid,
    algorithm: key.algorithm,
    state: stateOf(key, ring, now),
    file: key.file,
    madeAt: key.madeAt,
    verifiesUntil: key.verifiesUntil === Infinity ? undefined : key.verifiesUntil,
  }));
}

/** Returns the last reload of the configuration or of a file that is read separately, whichever was later. */
function reloadIn(
  last: LastReload | undefined,
  { failure, repairedAt = -Infinity }: ReloadStates,
): StatusReload | undefined {
  const nothing = { changes: [], files: [], problems: [] };
  if (failure !== undefined) return { ...nothing, successful: false, ...failure };
  if (last !== undefined && last.at >= repairedAt) return { ...nothing, successful: true, ...last };
  if (repairedAt === -Infinity) return undefined;
  return { ...nothing, successful: true, at: repairedAt };
}

interface StatusSources extends Pick<AdminSubject, "service" | "reloading" | "reloads"> {
  readonly explain: Explain;
  /** Wall clock, in milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * Collects the state of all parts of the process and all threads. Resolves within two seconds, even if some do not
 * answer.
 */
export async function collectStatus(sources: StatusSources): Promise<Status> {
  const { service, explain, startedAt } = sources;
  const { configuration, certificate, parts } = service;
  const { keys, assertionKeys, traffic, options } = parts;
  const now = options.clock.now();
  const [counted, threads, checks, { targets }, dependencies] = await Promise.all([
    countedBy(service),
    threadsOf(service),
    service.probing.checks(),
    traffic.state(),
    dependenciesOf(service, sources.reloads),
  ]);
  const upstreams = await upstreamsIn(configuration, counted, targets, threads.events.durations);
  const count = workersOf(configuration);
  return {
    version: options.version,
    node: process.versions.node,
    host: hostname(),
    pid: process.pid,
    now,
    startedAt,
    checks: [...checks],
    upstreams,
    state: service.state,
    ready: checks.every(({ passed }) => passed),
    workers: { count, alive: service.workersAlive() ?? count, answered: threads.answered },
    memory: {
      residentBytes: process.memoryUsage.rss(),
      bufferedBytes: counted("buffered_bytes"),
    },
    traffic: {
      requests: counted("http_requests_total"),
      inFlight: counted("http_requests_in_flight"),
      webSockets: counted("websocket_connections"),
      verifiedTokens: counted("token_cache_entries"),
    },
    routes: routesIn(configuration, counted, threads.events.durations),
    certificate: certificateIn(certificate),
    keys: [...keysIn(keys.ring, "tokens", now), ...keysIn(assertionKeys.ring, "assertions", now)],
    dependencies,
    reload: reloadIn(sources.reloading.lastReload(), sources.reloads),
    configuration: sources.reloading.inForce(),
    minutes: threads.events.minutes,
    refusals: await explainRefusals(threads.events.refusals, configuration, explain),
  };
}

async function countedBy({ parts }: Service): Promise<Counted> {
  const { threads, observation } = parts;
  const { metrics } = observation;
  return countedIn(await (threads?.metricObjects(metrics) ?? metrics.json()));
}

/** Merges the recent events of all threads that answer. */
async function threadsOf({ parts }: Service) {
  const own = parts.observation.recent.events();
  const { threads } = parts;
  if (threads === undefined) return { answered: 1, events: own };
  const answers = (await threads.recent()).filter((answer) => answer !== undefined);
  return { answered: answers.length, events: mergeEvents([own, ...answers]) };
}
