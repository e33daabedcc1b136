/** `npm run bench:quick`: compares the cost of a request in this working tree with a commit: CPU time, garbage, and tail latency. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startGrpc, startSink } from "./backends/sink.ts";
import { loadHttp2, missingHttp2Load } from "./load/h2load.ts";
import { usageOf } from "./machine/accounting.ts";
import { keepToOwnCores } from "./machine/cores.ts";
import { type Feature, FEATURES, featuresIn } from "./peers/features.ts";
import type { Place, Running } from "./peers/peer.ts";
import { clientKey, proofBy } from "../test/support/proofs.ts";
import { API_KEY, startSallyport } from "./peers/sallyport.ts";
import { type Instead, sendCounted } from "./quick/counted-load.ts";
import { allocatedBytes } from "./quick/heap-socket.ts";
import { exportRevision } from "./quick/exported.ts";
import { medianInterval, ratiosOf, type Spread, spreadOf } from "./report/statistics.ts";
import { ask, type Question, type Reply } from "./scenarios/ask.ts";
import { askHttp2 } from "./scenarios/ask-http2.ts";
import { refuseErrors } from "./scenarios/requests.ts";
import { buildProduct } from "./setting/product.ts";
import { prepareSetting, type Setting } from "./setting/setting.ts";

const HELP = `Usage: npm run bench:quick -- [options]

Compares what a small proxied request costs in this working tree and in a commit, in alternation, in less than a minute:
CPU, bytes that V8 allocates, and the 99th percentile of the latency. Only the bytes do not depend on what else the machine
does. The ratio is the median of the rounds (lowest–highest), with its 95 % confidence interval.

  --base REV            the commit (HEAD)
  --tls                 clients use TLS
  --http2               GETs over HTTP/2 and TLS, ten at a time on each connection (needs h2load)
  --grpc                unary gRPC calls in the same way, with HTTP/2 to the backend as well
  --with FEATURES       features switched on only in the working tree: ${FEATURES.join(", ")}
  --cookie              compares, in the working tree, a session in a cookie with the same token in Authorization
  --decision            compares, in the working tree, the question of another proxy with a GET that is forwarded
  --proof               compares, in the working tree, a token that is bound to a key, and its DPoP proofs, with an unbound one
  --rsa                 the proofs of --proof by RSA (RS256) instead of ES256
  --api-key             compares, in the working tree, an API key with a token
  --rounds N            rounds of each, however long they take (default: 8, or as many as fit into 50 seconds)
  -h, --help            this text
`;

/** The requests of one measurement: about a second of the proxy's CPU time, which the system counts in hundredths. */
const REQUESTS = 25_000;
const MOST_ROUNDS = 8;
const FEWEST_ROUNDS = 3;
/** No round begins that would end later, in milliseconds after the start. */
const END_MS = 50_000;

/** What must be on for it. */
const FOR_INSTEAD = {
  cookie: "browser",
  decision: "decisions",
  proof: "proof",
  apiKey: "apiKeys",
} as const;

const FIGURES = {
  cpu: { title: "CPU µs/request", digits: 1 },
  garbage: { title: "garbage, bytes/request", digits: 0 },
  p99: { title: "p99 ms, 32 connections", digits: 2 },
} as const;

type FigureName = keyof typeof FIGURES;
/** One value for each round. */
type Figures = Readonly<Record<FigureName, number[]>>;
type Measured = Readonly<Record<FigureName, number>>;

interface Comparison {
  readonly tls: boolean;
  /** GETs or unary calls over HTTP/2; undefined for HTTP/1.1. */
  readonly http2: "get" | "grpc" | undefined;
  readonly features: readonly Feature[];
  readonly instead: Instead | undefined;
  readonly rsa: boolean;
  readonly rounds: number | undefined;
  readonly stateServer: string | undefined;
}

interface Compared {
  readonly tree: Figures;
  readonly base: Figures;
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      base: { type: "string", default: "HEAD" },
      tls: { type: "boolean", default: false },
      http2: { type: "boolean", default: false },
      grpc: { type: "boolean", default: false },
      cookie: { type: "boolean", default: false },
      decision: { type: "boolean", default: false },
      proof: { type: "boolean", default: false },
      rsa: { type: "boolean", default: false },
      "api-key": { type: "boolean", default: false },
      with: { type: "string", default: "" },
      rounds: { type: "string" },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const { base } = values;
  const http2 = values.grpc ? "grpc" : values.http2 ? "get" : undefined;
  const missing = http2 === undefined ? undefined : missingHttp2Load();
  if (missing !== undefined) throw new Error(missing);
  const tls = values.tls || http2 !== undefined;
  const chosen = { ...values, apiKey: values["api-key"] };
  const instead = (["cookie", "decision", "proof", "apiKey"] as const).find((each) => chosen[each]);
  const needed = instead === undefined ? [] : [FOR_INSTEAD[instead]];
  const features = [...featuresIn(values.with), ...needed];
  const rounds = values.rounds === undefined ? undefined : Number(values.rounds);
  await keepToOwnCores();
  await using open = new AsyncDisposableStack();
  const stateServer = features.includes("shared") ? await stateServerFor(open) : undefined;
  await using setting = await prepareSetting((directory) => buildProduct(join(directory, "tree")));
  const entry =
    instead === undefined
      ? await exportRevision(base, join(setting.directory, "base"))
      : setting.entry;
  const figures = await compare(
    setting,
    { tls, http2, features, instead, rsa: values.rsa, rounds, stateServer },
    { tree: setting.entry, base: entry },
  );
  if (features.length > 0) console.log(`working tree with ${features.join(", ")}`);
  const protocol = http2 === undefined ? "" : http2 === "grpc" ? ", gRPC" : ", HTTP/2";
  console.log(`${tls ? "TLS" : "plain"}${protocol}, ${figures.tree.cpu.length} rounds`);
  const other = instead === undefined ? base : "forwarded GET";
  for (const name of ["cpu", "garbage", "p99"] as const) tell(name, figures, other);
}

function tell(name: FigureName, { tree, base }: Compared, revision: string): void {
  const { title, digits } = FIGURES[name];
  console.log(title);
  console.log(`  working tree   ${told(spreadOf(tree[name]), digits)}`);
  console.log(`  ${revision.padEnd(14)} ${told(spreadOf(base[name]), digits)}`);
  const ratios = ratiosOf(tree[name], base[name]);
  const [spread, sure] = [spreadOf(ratios), medianInterval(ratios)];
  const certain = sure && `, 95 % interval ${sure.low.toFixed(3)} to ${sure.high.toFixed(3)}`;
  console.log(`  ratio          ${told(spread, 3)}${certain ?? ""}`);
}

async function compare(
  setting: Setting,
  { tls, http2, features, instead, rsa, rounds, stateServer }: Comparison,
  entries: Readonly<Record<keyof Compared, string>>,
): Promise<Compared> {
  const grpc = http2 === "grpc";
  await using backend = await (grpc ? startGrpc({ holds: false }) : startSink());
  const place: Place = {
    backend: backend.port,
    tls,
    cores: "own",
    ...(http2 !== undefined && { http2: grpc ? "both" : "front" }),
  };
  const heapSocket = (of: keyof Compared): string => join(setting.directory, `${of}.sock`);
  const started = (of: keyof Compared) =>
    startSallyport(setting, place, {
      entry: entries[of],
      heapSocket: heapSocket(of),
      features: of === "tree" || instead !== undefined ? features : [],
      stateServer,
    });
  await using tree = await started("tree");
  await using base = await started("base");
  const ca = tls ? setting.certificate.pem : undefined;
  const token = await setting.keys.ES256.sign();
  const client = await clientKey(rsa ? "RS256" : "ES256");
  const bound = await setting.keys.ES256.sign({ jkt: client.jkt });
  const brought = instead === "proof" ? bound : instead === "apiKey" ? API_KEY.key : token;
  for (const { port } of [tree, base])
    await checkAnswers({ port, ca, path: "/orders/4711" }, token, http2);

  const running: Readonly<Record<keyof Compared, Running>> = { tree, base };
  const send = async (port: number, sent: Instead | undefined): Promise<number> => {
    if (http2 !== undefined) {
      const load = { port, tls, token, grpc, requests: REQUESTS };
      const result = await loadHttp2(setting, load);
      refuseErrors(result);
      return result.p99Ms;
    }
    const load = { port, ca, token: sent === undefined ? token : brought, instead: sent };
    const htu = `${tls ? "https" : "http"}://127.0.0.1:${port}/orders/4711`;
    // Made beforehand: they count for a minute, each of them once.
    const proofs =
      sent === "proof"
        ? Array.from({ length: REQUESTS }, () => proofBy(client, { htu, token: bound }))
        : undefined;
    const times = await sendCounted({
      ...load,
      ...(proofs === undefined ? {} : { proofs }),
      requests: REQUESTS,
    });
    return times.toSorted()[Math.ceil(REQUESTS * 0.99) - 1] ?? 0;
  };
  const measure = async (of: keyof Compared): Promise<Measured> => {
    const { pid, port } = running[of];
    const before = usageOf(pid).cpuSeconds;
    const allocated = await allocatedBytes(heapSocket(of));
    const p99 = await send(port, of === "tree" ? instead : undefined);
    const garbage = (await allocatedBytes(heapSocket(of))) - allocated;
    return {
      cpu: ((usageOf(pid).cpuSeconds - before) * 1e6) / REQUESTS,
      garbage: garbage / REQUESTS,
      p99,
    };
  };
  const figures: Compared = { tree: noFigures(), base: noFigures() };
  const round = async (of: keyof Compared): Promise<void> => {
    const measured = await measure(of);
    for (const name of ["cpu", "garbage", "p99"] as const) figures[of][name].push(measured[name]);
  };
  await measure("tree");
  await measure("base");
  let longest = 0;
  for (let index = 0; index < (rounds ?? MOST_ROUNDS); index++) {
    const began = performance.now();
    if (rounds === undefined && index >= FEWEST_ROUNDS && began + longest > END_MS) break;
    // The machine may change between the two, so each goes first in every other round.
    if (index % 2 === 0) await round("tree");
    await round("base");
    if (index % 2 === 1) await round("tree");
    longest = Math.max(longest, performance.now() - began);
  }
  return figures;
}

/** Starts a state server. @returns its URL; undefined if none is installed. */
async function stateServerFor(open: AsyncDisposableStack): Promise<string | undefined> {
  const { redisMissing, startRedis } = await import("../test/real/redis-server.ts");
  if (redisMissing === undefined) return open.use(await startRedis()).url;
  console.log(`shared: nothing answers at its address (${redisMissing})`);
  return undefined;
}

function noFigures(): Figures {
  return { cpu: [], garbage: [], p99: [] };
}

/** Throws unless a request with the token is answered, and one without it is refused. */
async function checkAnswers(
  question: Question,
  token: string,
  http2: Comparison["http2"],
): Promise<void> {
  const put = (question: Question): Promise<Reply> =>
    http2 === undefined ? ask(question) : askHttp2(question, http2 === "grpc");
  const [open, closed] = [await put({ ...question, token }), await put(question)];
  if (open.status === 200 && closed.status === 401) return;
  throw new Error(`answers ${open.status} with a token and ${closed.status} without one`);
}

function told(spread: Spread | undefined, digits: number): string {
  if (spread === undefined) return "–";
  const [median, low, high] = [spread.median, spread.low, spread.high].map((value) =>
    value.toFixed(digits),
  );
  return `${median} (${low}–${high})`;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
