import { startBackend } from "../backends/nginx.ts";
import { timedLoad } from "../load/oha.ts";
import { load } from "../load/wrk.ts";
import { missingPrograms } from "../machine/programs.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import { checkCorrectness } from "./correctness.ts";
import { WARM_UP_SECONDS } from "./requests.ts";
import { type Contender, inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";
import { tokenFile } from "./token-files.ts";

/** As fast as they are answered; an eighth of that; and a low rate. */
const RATES = [undefined, 4_000, 1_000];
/** The minimum duration: in a shorter time, the 32 handshakes at the beginning would determine the 99th percentile. */
const LEAST_SECONDS = 20;

/**
 * Measures tail latency: at saturation, where each request is timed by itself, and at fixed rates, where each is timed from when
 * it was due.
 */
export async function measureOpenLoop(
  bench: Bench,
  scenario: string,
  peers: readonly PeerName[],
): Promise<readonly Row[]> {
  const why = missingPrograms("oha");
  if (why !== undefined) return [voidRow(scenario, "all", "sallyport", why)];
  const rows: Row[] = [];
  for (const tls of [false, true])
    rows.push(...(await measureVariant(bench, scenario, peers, tls)));
  return rows;
}

async function measureVariant(
  bench: Bench,
  scenario: string,
  peers: readonly PeerName[],
  tls: boolean,
): Promise<readonly Row[]> {
  const { setting, rounds, say } = bench;
  const seconds = Math.max(bench.seconds, LEAST_SECONDS);
  await using ends = new AsyncDisposableStack();
  const { port: backend } = ends.use(await startBackend(setting));
  const contenders: Contender[][] = RATES.map(() => []);
  const voids: Row[] = [];
  for (const name of peers.filter((name) => bench.peers.includes(name))) {
    const peer: Peer = PEERS[name];
    const algorithm = peer.checks ?? "ES256";
    try {
      const running = ends.use(await peer.start(setting, { backend, tls, cores: "own" }));
      await checkCorrectness(setting, peer, running, { tls });
      const { port } = running;
      const tokens = await tokenFile(setting, algorithm, 1);
      await load({ port, tls, tokens, seconds: WARM_UP_SECONDS });
      const token = await setting.keys[algorithm].sign();
      for (const [index, perSecond] of RATES.entries()) {
        contenders[index]?.push({
          peer: name,
          variant: `${tls ? "TLS" : "plain"}, ${perSecond === undefined ? "saturated" : `${perSecond}/s`}`,
          async measure() {
            const result = await timedLoad({ port, tls, token, perSecond, seconds });
            const { requests, errors, p50Ms, p99Ms, p999Ms } = result;
            if (errors > 0) throw new Error(`${errors} of ${requests} requests failed`);
            if (perSecond !== undefined && requests < perSecond * seconds * 0.95) {
              throw new Error(`only ${requests} requests were answered`);
            }
            return { rate: requests / seconds, p50: p50Ms, p99: p99Ms, p999: p999Ms };
          },
        });
      }
    } catch (error) {
      voids.push(voidRow(scenario, tls ? "TLS" : "plain", name, messageOf(error)));
    }
  }
  const rows: Row[] = [];
  for (const each of contenders) rows.push(...(await inTurns(scenario, each, rounds, say)));
  return [...rows, ...voids];
}
