import type { Change } from "../../core/change.ts";
import type { LogSink } from "../../observe/log/log-sink.ts";
import type { Metrics } from "../../observe/metrics/metrics.ts";
import { type MetricObjects, totalsOf } from "../../observe/metrics/series.ts";
import { createSharedCounts } from "../../lib/async/shared-counts.ts";
import { IN_FLIGHT_TABLE } from "../../policy/concurrency/concurrency-limiter.ts";
import { createProofMemory } from "../../tokens/proofs/proof-memory.ts";
import { createSharedTimes } from "../../policy/rates/rate-limiter.ts";
import { CONNECTION_TABLE } from "../../server/listener/open-connections.ts";
import { usageMemory } from "../../server/listener/reading/reading-client.ts";
import { openDryRunGate } from "../explanation/dry-run-gate.ts";
import { logBacklogMemory } from "./log-backlog.ts";
import { prepareAll } from "../reload/reloader.ts";
import { collectStart, keepThreadsSmall } from "./thread-memory.ts";
import { mergeIssuers, mergeStates } from "./thread-state.ts";
import { TrafficThread } from "./traffic-thread.ts";
import type { Traffic, TrafficChange, TrafficOptions } from "../traffic.ts";
import { callEach } from "../../lib/async/isolation.ts";

/** Several threads that accept connections on one port and share metrics and logins. */
export type Threads = Awaited<ReturnType<typeof startThreads>>;

/** Interval of the health checks, in milliseconds. */
const CHECK_EVERY_MS = 1_000;
/** Delay after which the start is certainly complete and the main thread has little to do, in milliseconds. */
const COLLECT_AFTER_MS = 1_000;

/** Starts `count` threads. Rejects if one of them cannot listen on the address. */
export async function startThreads(options: TrafficOptions, count: number, sink: LogSink) {
  keepThreadsSmall(count);
  const placement = { index: 0, count, port: options.port, ...commonMemory(count) };
  const first = new TrafficThread(options, sink, placement);
  const { address, port } = await first.listening;
  const others = Array.from(
    { length: count - 1 },
    (_, other) => new TrafficThread(options, sink, { ...placement, index: other + 1, port }),
  );
  const threads = [first, ...others];
  await Promise.all(threads.map((thread) => thread.listening));
  setTimeout(collectStart, COLLECT_AFTER_MS).unref();
  const checks = setInterval(() => {
    callEach(threads, (thread) => thread.check());
  }, CHECK_EVERY_MS).unref();
  const dryRunGate = openDryRunGate(options);
  const traffic: Traffic = {
    address,
    port,
    // Each thread has its own gauge; the metrics add them up.
    tokenCacheEntries: () => 0,
    upstreamLoad: () => ({ inFlight: 0, waiting: 0, leftOut: 0, targets: 0 }),
    issuers: () => mergeIssuers(threads.flatMap(({ issuers }) => issuers)),
    query: dryRunGate.query,
    prepare: (changed) =>
      prepareAll([() => dryRunGate.prepare(changed), () => prepareAllThreads(threads, changed)]),
    async drain() {
      const finished = await Promise.all(threads.map((thread) => thread.drain()));
      clearInterval(checks);
      // The dry-run gate stays open: dry runs and reloads are answered as long as the process lives.
      return finished.every(Boolean);
    },
    async abandon() {
      clearInterval(checks);
      await Promise.all([dryRunGate.close(), ...threads.map((thread) => thread.abandon())]);
    },
    async state() {
      const states = await Promise.all(threads.map((thread) => thread.ask("state")));
      return mergeStates(states.filter((state) => state !== undefined));
    },
  };
  return {
    ...traffic,
    /**
     * Returns the metrics of this thread and all others together, in the exposition format. For threads that do not
     * answer, it uses their last known metrics.
     */
    metricsText: async (own: Metrics) => own.textWith(await countedIn(threads)),
    /** Returns the same as objects. */
    metricObjects: async (own: Metrics) =>
      totalsOf([await own.json(), ...(await countedIn(threads))]),
    /** Returns the recent events of each thread; undefined for a thread that does not answer. */
    recent: () => Promise.all(threads.map((thread) => thread.ask("recent"))),
    /** Returns the number of threads that serve clients. */
    alive: () => threads.filter(({ alive }) => alive).length,
    /** Returns the permanent failures of threads. */
    failures: () => threads.flatMap(({ failure }) => failure ?? []),
  };
}

/** Allocates the memory that all threads share. */
function commonMemory(count: number) {
  return {
    connections: createSharedCounts(count, CONNECTION_TABLE),
    inFlight: createSharedCounts(count, IN_FLIGHT_TABLE),
    arrivalTimes: createSharedTimes(),
    proofs: createProofMemory(count, Date.now()),
    usage: usageMemory(count),
    backlog: logBacklogMemory(count),
  };
}

async function countedIn(threads: readonly TrafficThread[]): Promise<MetricObjects[]> {
  const counted = await Promise.all(threads.map((thread) => thread.metrics()));
  return counted.flat();
}

/** Prepares a change in all threads. If one cannot prepare it, rolls back the others and rejects. */
async function prepareAllThreads(
  threads: readonly TrafficThread[],
  changed: TrafficChange,
): Promise<Change> {
  const prepared = await Promise.allSettled(threads.map((thread) => thread.prepare(changed)));
  const rollback = (): void => {
    for (const thread of threads) thread.rollback();
  };
  const refused = prepared.find(({ status }) => status === "rejected");
  if (refused?.status === "rejected") {
    rollback();
    throw refused.reason;
  }
  return {
    async commit() {
      await Promise.all(threads.map((thread) => thread.commit(changed)));
    },
    rollback,
  };
}
