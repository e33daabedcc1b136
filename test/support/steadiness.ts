import { Agent as HttpAgent } from "node:http";
import { Agent } from "node:https";
import { ask } from "./ask.ts";
import type { Peer } from "./raw-client.ts";

/** Below so many milliseconds a request counts as quick, whatever it took on a calm machine. */
const QUICK_MS = 100;
const ROUNDS = 3;
const REQUESTS = 60;
const AT_ONCE = 2;

/**
 * How many times longer valid requests take during an attack than just before it, at the 99th percentile; 1 when they stay
 * quick. Each must be answered 200. What else runs on the machine can spoil a round but not improve one, so the best of
 * three counts.
 *
 * @param attack resolves when it is over; requests go on until then.
 */
export async function slowdownUnder(
  peer: Peer,
  path: string,
  attack: () => Promise<unknown>,
): Promise<number> {
  let best = Infinity;
  for (let round = 0; round < ROUNDS && best > 3; round += 1) {
    const calm = p99(await durations(peer, path, (sent) => sent >= REQUESTS));
    const attacked = await p99Under(peer, path, attack);
    best = Math.min(best, attacked < QUICK_MS ? 1 : attacked / calm);
  }
  return best;
}

/**
 * How long valid requests take during an attack, in milliseconds, at the 99th percentile. Each must be answered 200.
 *
 * @param attack resolves when it is over; requests go on until then.
 */
export async function p99Under(
  peer: Peer,
  path: string,
  attack: () => Promise<unknown>,
): Promise<number> {
  let running = true;
  const over = attack().finally(() => (running = false));
  const loaded = durations(peer, path, (sent) => !running && sent >= REQUESTS);
  const [taken] = await Promise.all([loaded, over]);
  return p99(taken);
}

async function durations(
  peer: Peer,
  path: string,
  enough: (sent: number) => boolean,
): Promise<number[]> {
  const options = { keepAlive: true, maxSockets: AT_ONCE };
  const agent = peer.ca === undefined ? new HttpAgent(options) : new Agent(options);
  const taken: number[] = [];
  const worker = async (): Promise<void> => {
    while (!enough(taken.length)) {
      const started = performance.now();
      const { status, body } = await ask(peer, path, { agent });
      if (status !== 200) throw new Error(`a valid request was answered ${status}: ${body}`);
      taken.push(performance.now() - started);
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } finally {
    agent.destroy();
  }
  return taken;
}

function p99(taken: readonly number[]): number {
  const sorted = taken.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
}
