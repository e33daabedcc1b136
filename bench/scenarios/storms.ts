import { startBackend } from "../backends/nginx.ts";
import { load } from "../load/wrk.ts";
import { type Paced, startPaced } from "../load/paced.ts";
import { PEERS } from "../peers.ts";
import { USER } from "../peers/sallyport.ts";
import type { Row } from "../report/results.ts";
import { forge, garbage } from "../setting/tokens.ts";
import { WARM_UP_SECONDS } from "./requests.ts";
import { type Figures, inTurns } from "./rounds.ts";
import type { Bench } from "./scenario.ts";
import { tokenFile } from "./token-files.ts";

/** Requests per second that are timed: 2,500 in five seconds, so that 25 lie above the 99th percentile. */
const PROBES = 500;
const LOGINS = 20;
const GARBAGE = 2_000;
/** As many forged signatures as one client sends over four connections. */
const FORGED = 3_500;
const HANDSHAKES = 500;

/** Load that runs at the same time as the timed requests. */
type Storm = (during: Pick<Paced, "port" | "ca" | "seconds">) => ReturnType<typeof startPaced>;

/** How much longer a storm lasts than the timed requests, whose program must start and warm up first. */
const LONGER_SECONDS = 3;

/** Measures the latency of proxied requests over TLS at a fixed rate: alone, and during logins, refused tokens, handshakes. */
export async function measureStorms(bench: Bench, scenario: string): Promise<readonly Row[]> {
  if (!bench.peers.includes("sallyport")) return [];
  const { setting, rounds, seconds, say } = bench;
  await using backend = await startBackend(setting);
  const place = { backend: backend.port, tls: true, cores: "all" } as const;
  await using running = await PEERS.sallyport.start(setting, place);
  const valid = await setting.keys.ES256.sign();
  const during = { port: running.port, ca: setting.certificate.pem, seconds };
  const probe = { ...during, method: "GET", path: "/orders/4711", perSecond: PROBES } as const;
  const storms: Record<string, Storm | undefined> = {
    idle: undefined,
    [`${LOGINS} logins/s`]: logins,
    [`${GARBAGE} garbage tokens/s`]: refused(() => garbage()),
    [`${GARBAGE} forged signatures/s`]: refused(() => forge(valid)),
    [`${FORGED} new forged signatures/s`]: forgedAnew(valid),
    [`${HANDSHAKES} handshakes/s`]: handshakes(valid),
  };
  const contenders = Object.entries(storms).map(([variant, storm]) => ({
    peer: "sallyport" as const,
    variant,
    async measure(): Promise<Figures> {
      const raging = await storm?.({ ...during, seconds: seconds + LONGER_SECONDS });
      const probing = await startPaced({ ...probe, tokens: [valid] }, 200);
      const result = await probing.result;
      await raging?.result;
      return { p50: result.p50Ms, p99: result.p99Ms };
    },
  }));
  const tokens = await tokenFile(setting, "ES256", 1);
  await load({ ...during, tls: true, tokens, seconds: WARM_UP_SECONDS });
  for (const contender of contenders) await contender.measure();
  return await inTurns(scenario, contenders, rounds, say);
}

const logins: Storm = (during) => {
  const body = JSON.stringify(USER);
  const path = "/api/authenticate";
  return startPaced({ ...during, method: "POST", path, body, tokens: [], perSecond: LOGINS }, 200);
};

/** Creates a storm of clients that each open a connection for one request. */
function handshakes(token: string): Storm {
  const asked = { method: "GET", path: "/orders/4711", tokens: [token] } as const;
  return (during) =>
    startPaced({ ...during, ...asked, newConnections: true, perSecond: HANDSHAKES }, 200);
}

/** Creates a storm of tokens with a wrong signature, each another one, over four connections. */
function forgedAnew(token: string): Storm {
  const asked = { method: "GET", path: "/", tokens: [token], forged: true } as const;
  return (during) => startPaced({ ...during, ...asked, connections: 4, perSecond: FORGED }, 401);
}

/** Creates a storm of a hundred different tokens that get a 401. */
function refused(token: () => string): Storm {
  const tokens = Array.from({ length: 100 }, token);
  return (during) =>
    startPaced({ ...during, method: "GET", path: "/", tokens, perSecond: GARBAGE }, 401);
}
