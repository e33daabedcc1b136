import { startGrpc, startSink } from "../backends/sink.ts";
import { loadHttp2, missingHttp2Load } from "../load/h2load.ts";
import { holdStreams } from "../load/held-streams.ts";
import { settledMemory } from "../machine/settle.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import { checkRefusals } from "./correctness.ts";
import { type Contender, inTurns, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";

const CONNECTIONS = 100;
const STREAMS = 100;
const SOME = 2_000;

const KINDS = [
  { variant: "calls, h2c to the backend", grpc: true },
  { variant: "GETs, HTTP/1.1 to the backend", grpc: false },
];

/** Measures the resident memory of one idle HTTP/2 stream over TLS, including its share of the connections on both sides. */
export async function measureIdleStreams(
  bench: Bench,
  scenario: string,
  peers: readonly PeerName[],
): Promise<readonly Row[]> {
  const { rounds, say } = bench;
  const why = missingHttp2Load();
  if (why !== undefined) return [voidRow(scenario, "all", "sallyport", why)];
  const rows: Row[] = [];
  for (const { variant, grpc } of KINDS) {
    await using backend = await (grpc ? startGrpc({ holds: true }) : startSink());
    const contenders = peers
      .filter((peer) => bench.peers.includes(peer))
      .map((peer): Contender => ({
        peer,
        variant,
        measure: () => measure(bench, PEERS[peer], grpc, backend.port),
      }));
    rows.push(...(await inTurns(scenario, contenders, rounds, say)));
  }
  return rows;
}

/** Measures a proxy that has just answered some requests, before and after the streams are opened. */
async function measure({ setting }: Bench, peer: Peer, grpc: boolean, backend: number) {
  const http2 = grpc ? "both" : "front";
  await using running = await peer.start(setting, { backend, tls: true, cores: "own", http2 });
  const { pid, port } = running;
  await checkRefusals(setting, peer, running, { tls: true, http2: grpc ? "grpc" : "get" });
  const token = await setting.keys[peer.checks ?? "ES256"].sign();
  await loadHttp2(setting, { port, tls: true, token, grpc, requests: SOME });
  const before = await settledMemory(pid);
  const ca = setting.certificate.pem;
  await using ends = new AsyncDisposableStack();
  const held = { port, ca, token, connections: CONNECTIONS, streams: STREAMS, grpc };
  ends.use(await holdStreams(held));
  const after = await settledMemory(pid);
  return { perStream: (after - before) / (CONNECTIONS * STREAMS) / 1e3, resident: after / 1e6 };
}
