import { startBackend } from "../backends/nginx.ts";
import { shakeHands } from "../load/handshakes.ts";
import { load } from "../load/wrk.ts";
import { usageOf } from "../machine/accounting.ts";
import { type PeerName, PEERS } from "../peers.ts";
import type { Peer } from "../peers/peer.ts";
import type { Row } from "../report/results.ts";
import { type Contender, inTurns, messageOf, voidRow } from "./rounds.ts";
import type { Bench } from "./scenario.ts";
import { tokenFile } from "./token-files.ts";

/** Measures the cost of a TLS connection with one request: with a full handshake, and with a resumed session. */
export async function measureHandshakes(
  bench: Bench,
  scenario: string,
  peers: readonly PeerName[],
): Promise<readonly Row[]> {
  const { setting, rounds, seconds, say } = bench;
  await using ends = new AsyncDisposableStack();
  const { port: backend } = ends.use(await startBackend(setting));
  const kinds = [
    { variant: "full", resumed: false, contenders: new Array<Contender>() },
    { variant: "resumed", resumed: true, contenders: new Array<Contender>() },
  ];
  const rows: Row[] = [];
  for (const name of peers.filter((name) => bench.peers.includes(name))) {
    const peer: Peer = PEERS[name];
    try {
      const running = ends.use(await peer.start(setting, { backend, tls: true, cores: "own" }));
      const { pid, port } = running;
      const algorithm = peer.checks ?? "ES256";
      const tokens = await tokenFile(setting, algorithm, 1);
      const token = await setting.keys[algorithm].sign();
      await load({ port, tls: true, tokens, seconds: 2 });
      for (const { variant, resumed, contenders } of kinds) {
        contenders.push({
          peer: name,
          variant,
          async measure() {
            const ca = setting.certificate.pem;
            let before = 0;
            const asked = { port, ca, token, resumed, seconds };
            const { handshakes } = await shakeHands(asked, () => {
              before = usageOf(pid).cpuSeconds;
            });
            const used = usageOf(pid).cpuSeconds - before;
            return { cpu: (used * 1e6) / handshakes, rate: handshakes / seconds };
          },
        });
      }
    } catch (error) {
      rows.push(voidRow(scenario, "full", name, messageOf(error)));
    }
  }
  for (const { contenders } of kinds)
    rows.push(...(await inTurns(scenario, contenders, rounds, say)));
  return rows;
}
