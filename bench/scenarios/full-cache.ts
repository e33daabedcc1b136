import { startBackend } from "../backends/nginx.ts";
import { CONNECTIONS, load } from "../load/wrk.ts";
import { peakMemory } from "../machine/accounting.ts";
import { PEERS } from "../peers.ts";
import type { Row } from "../report/results.ts";
import { metric } from "./metrics.ts";
import { refuseErrors } from "./requests.ts";
import { inTurns } from "./rounds.ts";
import type { Bench } from "./scenario.ts";
import { tokenFile } from "./token-files.ts";

const ENTRIES = 10_000;
const FILLING_ROUNDS = 20;

/** Measures Sallyport's peak resident memory under requests with one token while its cache holds 10,000 others. */
export async function measureFullCache(bench: Bench, scenario: string): Promise<readonly Row[]> {
  if (!bench.peers.includes("sallyport")) return [];
  const { setting, rounds, seconds, say } = bench;
  await using backend = await startBackend(setting);
  const place = { backend: backend.port, tls: true, cores: "own" } as const;
  await using running = await PEERS.sallyport.start(setting, place);
  const { port, pid } = running;
  const many = await tokenFile(setting, "ES256", ENTRIES);
  const one = await tokenFile(setting, "ES256", 1);
  let from = 0;
  for (let round = 0; round < FILLING_ROUNDS; round++) {
    const { requests } = await load({ port, tls: true, tokens: many, from, seconds: 1 });
    from = (from + Math.max(0, requests - CONNECTIONS)) % ENTRIES;
    if ((await metric(running, "sallyport_token_cache_entries")) >= ENTRIES) break;
  }
  const remembered = await metric(running, "sallyport_token_cache_entries");
  const variant = `TLS, ${remembered} cached tokens`;
  const contender = {
    peer: "sallyport" as const,
    variant,
    async measure() {
      const asked = load({ port, tls: true, tokens: one, seconds });
      const { result, peakBytes } = await peakMemory(pid, asked);
      refuseErrors(result);
      if (remembered < ENTRIES) throw new Error("the cache could not be filled");
      return { resident: peakBytes / 1e6, rate: result.perSecond };
    },
  };
  return await inTurns(scenario, [contender], rounds, say);
}
