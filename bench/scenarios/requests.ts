import { startBackend } from "../backends/nginx.ts";
import { CONNECTIONS, load, type LoadResult } from "../load/wrk.ts";
import { type Usage, usageOf } from "../machine/accounting.ts";
import type { Cores } from "../machine/cores.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer, Running } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import { checkCorrectness } from "./correctness.ts";
import { metric } from "./metrics.ts";
import { type Contender, type Figures, inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";
import { tokenFile } from "./token-files.ts";

/** Small requests as fast as they are answered. */
export interface RequestLoad {
  readonly scenario: string;
  readonly peers: readonly PeerName[];
  /** The number of different tokens, which are sent in turn. */
  readonly tokens: number;
  /** Bytes of a JSON body; by default, a GET is sent. */
  readonly bodyBytes?: number;
  /** The cores that each proxy may use; by default, a separate one. */
  readonly cores?: Cores;
}

/** The time for compiling code and connecting to the backend: V8 takes some 100,000 requests, which cost twice as much. */
export const WARM_UP_SECONDS = 12;

/** Measures all peers in alternation, first over plain HTTP, then over TLS. */
export async function measureRequests(bench: Bench, what: RequestLoad): Promise<readonly Row[]> {
  return [
    ...(await measureVariant(bench, what, false)),
    ...(await measureVariant(bench, what, true)),
  ];
}

async function measureVariant(
  bench: Bench,
  { scenario, peers, tokens, bodyBytes = 0, cores = "own" }: RequestLoad,
  tls: boolean,
): Promise<readonly Row[]> {
  const { setting, rounds, seconds, say } = bench;
  const variant = tls ? "TLS" : "plain";
  await using ends = new AsyncDisposableStack();
  const { port: backend } = ends.use(await startBackend(setting));
  const contenders: Contender[] = [];
  const voids: Row[] = [];
  for (const name of peers.filter((name) => bench.peers.includes(name))) {
    const peer: Peer = PEERS[name];
    say(`${scenario}, ${variant}: ${name} starts`);
    try {
      const running = ends.use(await peer.start(setting, { backend, tls, cores }));
      await checkCorrectness(setting, peer, running, { tls, post: bodyBytes > 0 });
      const sent = {
        tls,
        bodyBytes,
        tokens: await tokenFile(setting, peer.checks ?? "ES256", tokens),
      };
      const measure = requestsTo(running, sent, tokens);
      await measure(WARM_UP_SECONDS);
      contenders.push({ peer: name, variant, measure: () => measure(seconds) });
    } catch (error) {
      voids.push(voidRow(scenario, variant, name, messageOf(error)));
    }
  }
  return [...(await inTurns(scenario, contenders, rounds, say)), ...voids];
}

/** Returns a function that measures a proxy once. With several tokens, each call continues after the last one sent. */
function requestsTo(
  running: Running,
  sent: { readonly tls: boolean; readonly bodyBytes: number; readonly tokens: string },
  tokens: number,
): (seconds: number) => Promise<Figures> {
  let from = 0;
  return async (seconds) => {
    const hits = tokens > 1 ? await cacheHits(running) : 0;
    const before = usageOf(running.pid);
    const result = await load({ ...sent, port: running.port, from, seconds });
    const after = usageOf(running.pid);
    from = (from + result.requests + CONNECTIONS) % tokens;
    refuseErrors(result);
    if (tokens > 1 && (await cacheHits(running)) > hits) {
      throw new Error("found tokens in its cache, where every one should have been new");
    }
    return figuresOf(result, before, after);
  };
}

/** Returns the figures of a row, with the usage before and after the load: CPU per request, in microseconds. */
export function figuresOf(result: LoadResult, before: Usage, after: Usage): Figures {
  return {
    cpu: ((after.cpuSeconds - before.cpuSeconds) * 1e6) / result.requests,
    rate: result.perSecond,
    p50: result.p50Ms,
    p99: result.p99Ms,
    resident: after.residentBytes / 1e6,
  };
}

/** Throws if requests failed: that makes a row void, since its figures would be meaningless. */
export function refuseErrors({ requests, errors }: LoadResult): void {
  if (errors > 0) throw new Error(`${errors} of ${requests} requests failed`);
  if (requests === 0) throw new Error("no request was answered");
}

async function cacheHits(running: Running): Promise<number> {
  if (running.adminPort === undefined) return 0;
  return metric(running, 'sallyport_token_cache_requests_total{result="hit"}');
}
