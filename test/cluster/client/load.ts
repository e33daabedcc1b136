/** Requests at a steady rate, as far as answers come; every request that is not answered with 200 is a failure. */
import { Agent } from "node:https";
import { type Answer, bearer, firstLogin, type Peer, send } from "./send.ts";

export interface LoadOrder {
  readonly kind: "load";
  readonly peer: Peer;
  readonly credentials: object;
  readonly streams: readonly Stream[];
}

interface Stream {
  readonly name: string;
  readonly method: "GET" | "POST";
  readonly perSecond: number;
  /** Requests at a time, at most. What is due while so many wait is left out. */
  readonly connections: number;
  /** Otherwise each request has a new connection. */
  readonly kept: boolean;
}

/** How an order that goes on for a while is told of. */
export interface Until {
  /** To be called when it has begun. */
  begun(): void;
  /** Resolves when it is to end. */
  readonly told: Promise<void>;
}

export interface LoadReport {
  readonly sent: number;
  readonly failed: number;
  /** The first failures, each with its time. */
  readonly failures: readonly string[];
  /** The longest time without an answer of 200, in milliseconds. */
  readonly longestGapMs: number;
  /** Milliseconds: half, and all but a hundredth, of the answers took no longer. */
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const FAILURES = 20;
const BODY = "x".repeat(1_000);

/** Loads until it is told to stop, and waits for the last answers. */
export async function load(order: LoadOrder, { begun, told }: Until): Promise<LoadReport> {
  const { peer, credentials, streams } = order;
  const headers = bearer(await firstLogin(peer, credentials));
  const tally = new Tally();
  const running = new Set<Promise<void>>();
  const timers = streams.map((stream) => {
    const { name, method, connections, kept, perSecond } = stream;
    const agent =
      kept && new Agent({ keepAlive: true, maxSockets: connections, scheduling: "fifo" });
    const body = method === "POST" ? BODY : undefined;
    const ask = (): Promise<Answer> => send(peer, { method, path: "/load", headers, agent }, body);
    const mine = new Set<Promise<void>>();
    const begin = (): void => {
      const counted = tally
        .count(name, ask)
        .finally(() => [mine, running].map((set) => set.delete(counted)));
      for (const set of [mine, running]) set.add(counted);
    };
    return setInterval(() => mine.size < connections && begin(), 1000 / perSecond);
  });
  begun();
  await told;
  for (const timer of timers) clearInterval(timer);
  await Promise.all(running);
  return tally.report();
}

class Tally {
  readonly #times: number[] = [];
  readonly #failures: string[] = [];
  #sent = 0;
  #longestGapMs = 0;
  #lastSuccess = performance.now();

  async count(stream: string, ask: () => Promise<Answer>): Promise<void> {
    const began = performance.now();
    this.#sent += 1;
    try {
      const { status } = await ask();
      if (status !== 200) throw new Error(String(status));
      const now = performance.now();
      this.#times.push(now - began);
      this.#longestGapMs = Math.max(this.#longestGapMs, now - this.#lastSuccess);
      this.#lastSuccess = now;
    } catch (error) {
      this.#failures.push(`${new Date().toISOString()} ${stream}: ${String(error)}`);
    }
  }

  report(): LoadReport {
    const times = this.#times.toSorted((a, b) => a - b);
    const quantile = (part: number) => Math.round(times[Math.floor(times.length * part)] ?? 0);
    return {
      sent: this.#sent,
      failed: this.#failures.length,
      failures: this.#failures.slice(0, FAILURES),
      longestGapMs: Math.round(this.#longestGapMs),
      p50Ms: quantile(0.5),
      p99Ms: quantile(0.99),
    };
  }
}
