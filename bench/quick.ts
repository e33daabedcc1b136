/** `npm run bench:quick`: what a request costs in this working tree, to a commit. Needs no other programs. */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { startSink } from "./backends/sink.ts";
import { usageOf } from "./machine/accounting.ts";
import { keepToOwnCores } from "./machine/cores.ts";
import type { Running } from "./peers/peer.ts";
import { startSallyport } from "./peers/sallyport.ts";
import { sendCounted } from "./quick/counted-load.ts";
import { exportRevision } from "./quick/exported.ts";
import { ratioOf, type Spread, spreadOf } from "./report/statistics.ts";
import { ask } from "./scenarios/ask.ts";
import { buildProduct } from "./setting/product.ts";
import { prepareSetting, type Setting } from "./setting/setting.ts";

const HELP = `Usage: npm run bench:quick -- [options]

Compares what a small proxied request costs in this working tree with a commit, in turns, in less than a minute.

  --base REV            the commit (HEAD)
  --tls                 with TLS in front
  -h, --help            this text
`;

/** Of one measurement: about a second of the proxy's time, which the system counts in hundredths. */
const REQUESTS = 25_000;
const MOST_ROUNDS = 8;
const FEWEST_ROUNDS = 3;
/** No round begins that would end later, in milliseconds after the start. */
const END_MS = 50_000;

interface Figures {
  readonly tree: number[];
  readonly base: number[];
}

async function main(args: readonly string[]): Promise<void> {
  const { values } = parseArgs({
    args: [...args],
    options: {
      base: { type: "string", default: "HEAD" },
      tls: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const { base, tls } = values;
  await keepToOwnCores();
  await using setting = await prepareSetting((directory) => buildProduct(join(directory, "tree")));
  const entry = await exportRevision(base, join(setting.directory, "base"));
  const figures = await compare(setting, tls, { tree: setting.entry, base: entry });
  console.log(`CPU µs/request, ${tls ? "TLS" : "plain"}, ${figures.tree.length} rounds`);
  console.log(`  working tree   ${told(spreadOf(figures.tree), 1)}`);
  console.log(`  ${base.padEnd(14)} ${told(spreadOf(figures.base), 1)}`);
  console.log(`  ratio          ${told(ratioOf(figures.tree, figures.base), 3)}`);
}

async function compare(
  setting: Setting,
  tls: boolean,
  entries: Readonly<Record<keyof Figures, string>>,
): Promise<Figures> {
  await using sink = await startSink();
  const place = { backend: sink.port, tls, cores: "own" } as const;
  await using tree = await startSallyport(setting, place, { entry: entries.tree });
  await using base = await startSallyport(setting, place, { entry: entries.base });
  const ca = tls ? setting.certificate.pem : undefined;
  const token = await setting.keys.ES256.sign();
  for (const { port } of [tree, base]) await checkAnswers(port, ca, token);

  const measure = async ({ pid, port }: Running, requests = REQUESTS): Promise<number> => {
    const before = usageOf(pid).cpuSeconds;
    await sendCounted({ port, ca, token, requests });
    return ((usageOf(pid).cpuSeconds - before) * 1e6) / requests;
  };
  await measure(tree);
  await measure(base);
  const figures: Figures = { tree: [], base: [] };
  let longest = 0;
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const began = performance.now();
    if (round >= FEWEST_ROUNDS && began + longest > END_MS) break;
    // Whoever comes second finds another machine: each is first in every other round.
    if (round % 2 === 0) figures.tree.push(await measure(tree));
    figures.base.push(await measure(base));
    if (round % 2 === 1) figures.tree.push(await measure(tree));
    longest = Math.max(longest, performance.now() - began);
  }
  return figures;
}

/** Throws unless the token opens the door, and nothing else does. */
async function checkAnswers(port: number, ca: string | undefined, token: string): Promise<void> {
  const question = { port, ca, path: "/orders/4711" };
  const [open, closed] = [await ask({ ...question, token }), await ask(question)];
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
