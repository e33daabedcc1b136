import { readFileSync } from "node:fs";
import { Agent as HttpAgent } from "node:http";
import { Agent } from "node:https";
import { ask } from "./ask.ts";
import type { Peer } from "./raw-client.ts";

/** The least time counted for the calm period, in milliseconds. Below that, the scheduler dominates. */
const FLOOR_MS = 15;
/** The documented limit: during an attack, valid requests take up to three times as long. */
const PROMISED = 3;
const ROUNDS = 6;
const REQUESTS = 60;
const AT_ONCE = 2;
/** The request interval of a client that does not wait for responses, in milliseconds. */
const EVERY_MS = 10;

/** Resolves when the attack is over. Valid requests continue until then. */
type Attack = () => Promise<unknown>;

/** A server process with one serving thread. */
type Answering = Peer & { readonly pid: number };

/**
 * Returns how many times longer valid requests take during an attack than just before it, at the 99th percentile. Each
 * must get 200. Time that either process waited for a CPU does not count, as if each had its own. Other load on the
 * machine can still spoil a round but not improve it, so the best of six rounds counts, and the first one within the
 * limit is the last.
 */
export async function slowdownUnder(
  peer: Answering,
  path: string,
  attack: Attack,
): Promise<number> {
  const best = await bestOf(peer, path, attack, ROUNDS, (taken) => taken);
  return best.slower;
}

export interface FeltUnder {
  /** How many times longer, as in `slowdownUnder`. */
  readonly slower: number;
  /** The wall-clock time of valid requests at the 99th percentile, in milliseconds. */
  readonly p99: number;
}

/**
 * Measures the same, but counts standstills for as long as they last: a client that waits for a response sends no
 * requests meanwhile, so a second without any response would be only two requests among hundreds.
 *
 * @param attack must run in a separate thread, or its own cost counts as well.
 * @param rounds the maximum to measure.
 */
export function feltUnder(
  peer: Answering,
  path: string,
  attack: Attack,
  rounds = ROUNDS,
): Promise<FeltUnder> {
  return bestOf(peer, path, attack, rounds, withMissed);
}

async function bestOf(
  peer: Answering,
  path: string,
  attack: Attack,
  rounds: number,
  counted: (taken: readonly number[]) => readonly number[],
): Promise<FeltUnder> {
  let best: FeltUnder = { slower: Infinity, p99: Infinity };
  for (let round = 0; round < rounds && best.slower > PROMISED; round += 1) {
    const calm = await requestsUntil(peer, path, () => true);
    let running = true;
    const over = attack().finally(() => (running = false));
    const [attacked] = await Promise.all([requestsUntil(peer, path, () => !running), over]);
    const ownTime = (taken: readonly Taken[]): number => p99(counted(taken.map(({ own }) => own)));
    const slower = ownTime(attacked) / Math.max(ownTime(calm), FLOOR_MS);
    if (slower < best.slower) best = { slower, p99: p99(attacked.map(({ wall }) => wall)) };
  }
  return best;
}

/** Reads from /proc how long a thread ran, and how long it waited for a CPU, in milliseconds (sched-stats.rst). */
function scheduled(thread: string): { work: number; waited: number } {
  const [work, waited] = readFileSync(`/proc/${thread}/schedstat`, "utf8").split(" ");
  return { work: Number(work) / 1e6, waited: Number(waited) / 1e6 };
}

function clocks(pid: number): { wall: number; work: number; lost: number } {
  const theirs = scheduled(String(pid));
  const ours = scheduled("thread-self");
  const lost = theirs.waited + ours.waited + ours.work;
  return { wall: performance.now(), work: theirs.work, lost };
}

/** The time of a request, in milliseconds. */
interface Taken {
  readonly wall: number;
  /** Without the time spent waiting for a CPU, and without the client's own CPU time. */
  readonly own: number;
}

/** Sends requests until there are enough responses and `over` returns true. */
async function requestsUntil(peer: Answering, path: string, over: () => boolean): Promise<Taken[]> {
  const options = { keepAlive: true, maxSockets: AT_ONCE };
  const agent = peer.ca === undefined ? new HttpAgent(options) : new Agent(options);
  const taken: Taken[] = [];
  const worker = async (): Promise<void> => {
    while (taken.length < REQUESTS || !over()) {
      const began = clocks(peer.pid);
      const { status, body } = await ask(peer, path, { agent });
      if (status !== 200) throw new Error(`a valid request was answered ${status}: ${body}`);
      const ended = clocks(peer.pid);
      const wall = ended.wall - began.wall;
      const idle = wall - (ended.lost - began.lost);
      taken.push({ wall, own: Math.max(ended.work - began.work, idle) });
    }
  };
  try {
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
  } finally {
    agent.destroy();
  }
  return taken;
}

/** Adds the times of the requests that would have been sent during each wait. */
function withMissed(taken: readonly number[]): number[] {
  return taken.flatMap((ms) =>
    Array.from(
      { length: Math.max(1, Math.ceil(ms / EVERY_MS)) },
      (_none, missed) => ms - missed * EVERY_MS,
    ),
  );
}

function p99(taken: readonly number[]): number {
  const sorted = taken.toSorted((a, b) => a - b);
  return sorted[Math.ceil(sorted.length * 0.99) - 1] ?? Number.NaN;
}
