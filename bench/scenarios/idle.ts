import { startBackend } from "../backends/nginx.ts";
import { startSink } from "../backends/sink.ts";
import { hold } from "../load/held.ts";
import { load } from "../load/wrk.ts";
import { settledMemory } from "../machine/settle.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import { checkRefusals } from "./correctness.ts";
import { type Contender, inTurns } from "./rounds.ts";
import type { Bench } from "./scenario.ts";
import { tokenFile } from "./token-files.ts";

/** Measures the resident memory of one idle TLS connection: with 5,000 keep-alive connections, and 1,000 WebSockets. */
export async function measureIdle(
  bench: Bench,
  scenario: string,
  peers: readonly PeerName[],
): Promise<readonly Row[]> {
  const { setting, rounds, say } = bench;
  await using nginx = await startBackend(setting);
  await using sink = await startSink();
  const kinds = [
    { variant: "TLS keep-alive", count: 5_000, webSocket: false, backend: nginx.port },
    { variant: "TLS WebSocket", count: 1_000, webSocket: true, backend: sink.port },
  ];
  const rows: Row[] = [];
  for (const kind of kinds) {
    const contenders = peers
      .filter((peer) => bench.peers.includes(peer))
      .map((peer): Contender => {
        const { variant } = kind;
        return { peer, variant, measure: () => measure(bench, PEERS[peer], kind) };
      });
    rows.push(...(await inTurns(scenario, contenders, rounds, say)));
  }
  return rows;

  /** Measures a proxy that has just answered some requests, before and after the connections are opened. */
  async function measure(
    { setting }: Bench,
    peer: Peer,
    { count, webSocket, backend }: (typeof kinds)[number],
  ) {
    const algorithm = peer.checks ?? "ES256";
    await using running = await peer.start(setting, { backend, tls: true, cores: "own" });
    const { pid, port } = running;
    await checkRefusals(setting, peer, running, { tls: true });
    await load({ port, tls: true, tokens: await tokenFile(setting, algorithm, 1), seconds: 2 });
    const before = await settledMemory(pid);
    const token = await setting.keys[algorithm].sign();
    const ca = setting.certificate.pem;
    await using ends = new AsyncDisposableStack();
    ends.use(await hold({ port, ca, token, count, webSocket }));
    const after = await settledMemory(pid);
    return { perConnection: (after - before) / count / 1e3, resident: after / 1e6 };
  }
}
