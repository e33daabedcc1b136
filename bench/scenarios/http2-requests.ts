import { startBackend } from "../backends/nginx.ts";
import { startGrpc } from "../backends/sink.ts";
import { type Http2Load, loadHttp2, missingHttp2Load } from "../load/h2load.ts";
import { usageOf } from "../machine/accounting.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer, Place, Running } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import type { Setting } from "../setting/setting.ts";
import { checkCorrectness } from "./correctness.ts";
import { figuresOf, refuseErrors, WARM_UP_SECONDS } from "./requests.ts";
import { type Contender, type Figures, inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";

/** Small requests over HTTP/2 and TLS, as fast as they are answered. */
interface Http2Requests {
  readonly scenario: string;
  readonly peers: readonly PeerName[];
  /** Whether they are unary gRPC calls, over h2c to the backend; otherwise GETs, over HTTP/1.1 to the backend. */
  readonly grpc: boolean;
}

/** The assumed rate of the first measurement. */
const FIRST_PER_SECOND = 4_000;

/** Measures all peers in turns. */
export async function measureHttp2Requests(
  bench: Bench,
  { scenario, peers, grpc }: Http2Requests,
): Promise<readonly Row[]> {
  const { setting, rounds, seconds, say } = bench;
  const variant = "TLS";
  const why = missingHttp2Load();
  if (why !== undefined) return [voidRow(scenario, variant, "sallyport", why)];
  await using ends = new AsyncDisposableStack();
  const backend = ends.use(await (grpc ? startGrpc({ holds: false }) : startBackend(setting)));
  const place: Place = {
    backend: backend.port,
    tls: true,
    cores: "own",
    http2: grpc ? "both" : "front",
  };
  const contenders: Contender[] = [];
  const voids: Row[] = [];
  for (const name of peers.filter((name) => bench.peers.includes(name))) {
    const peer: Peer = PEERS[name];
    say(`${scenario}, ${variant}: ${name} starts`);
    try {
      const running = ends.use(await peer.start(setting, place));
      const kind = { tls: true, http2: grpc ? "grpc" : "get" } as const;
      await checkCorrectness(setting, peer, running, kind);
      const token = await setting.keys[peer.checks ?? "ES256"].sign();
      const measure = callsTo(setting, running, { port: running.port, tls: true, token, grpc });
      // The rate of the first part determines the number of requests of the second.
      for (const part of [1, WARM_UP_SECONDS - 1]) await measure(part);
      contenders.push({ peer: name, variant, measure: () => measure(seconds) });
    } catch (error) {
      voids.push(voidRow(scenario, variant, name, messageOf(error)));
    }
  }
  return [...(await inTurns(scenario, contenders, rounds, say)), ...voids];
}

/** Returns a function that measures a proxy for about this many seconds, based on the rate of the previous call. */
function callsTo(
  setting: Setting,
  { pid }: Running,
  sent: Omit<Http2Load, "requests">,
): (seconds: number) => Promise<Figures> {
  let perSecond = FIRST_PER_SECOND;
  return async (seconds) => {
    const before = usageOf(pid);
    const result = await loadHttp2(setting, { ...sent, requests: Math.ceil(perSecond * seconds) });
    const after = usageOf(pid);
    refuseErrors(result);
    perSecond = result.perSecond;
    return figuresOf(result, before, after);
  };
}
