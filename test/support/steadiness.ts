import { readFileSync } from "node:fs";
import { Agent as HttpAgent } from "node:http";
import { Agent } from "node:https";
import { ask } from "./ask.ts";
import type { Peer } from "./raw-client.ts";

/** What a calm machine takes is counted as so many milliseconds at least: below that it is the scheduler's doing. */
const FLOOR_MS = 15;
/** What is promised: valid requests take up to three times as long while an attack lasts. */
const PROMISED = 3;
const ROUNDS = 6;
const REQUESTS = 60;
const AT_ONCE = 2;
/** How often somebody who does not wait for answers would ask, in milliseconds. */
const EVERY_MS = 10;

/** Resolves when the attack is over; valid requests go on until then. */
type Attack = () => Promise<unknown>;

/** Who answers, in a process with one thread that serves. */
type Answering = Peer & { readonly pid: number };

/**
 * How many times longer valid requests take during an attack than just before it, at the 99th percentile. Each must be
 * answered 200. Where each process has a processor of its own, that is: what both had to wait for one does not count. What
 * else runs on the machine can still spoil a round, but not improve one, so the best of six counts, and the first that keeps
 * what is promised is the last.
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
  /** How many times longer, as `slowdownUnder` has it. */
  readonly slower: number;
  /** Milliseconds that valid requests took by the clock on the wall, at the 99th percentile. */
  readonly p99: number;
}

/**
 * The same, with standstills counted for as long as they last: who waits for an answer does not ask meanwhile, so that a
 * second in which nobody is answered is two requests among hundreds.
 *
 * @param attack from a thread of its own, or what it costs to send counts as well.
 * @param rounds the most that are measured.
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

/** By /proc: how long a thread was at work, and how long it waited for a processor, in milliseconds (sched-stats.rst). */
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

/** What a request took, in milliseconds. */
interface Taken {
  readonly wall: number;
  /** Without what was spent on waiting for a processor, and by who asks. */
  readonly own: number;
}

/** Asks until there are enough answers, and what else is waited for has come. */
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

/** With what those who asked during a wait would have waited. */
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
