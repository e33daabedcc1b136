import type { Change } from "../core/change.ts";
import type { LogSink } from "../observe/log-sink.ts";
import type { Metrics } from "../observe/metrics.ts";
import { openQuestions } from "./explanation/questions.ts";
import { prepareAll } from "./prepare-all.ts";
import { TrafficThread } from "./traffic-thread.ts";
import type { Traffic, TrafficChange, TrafficOptions } from "./traffic.ts";

/** Several threads that accept on one port, with one set of metrics and one place where people log in. */
export interface Threads extends Traffic {
  /** The exposition of this thread's metrics and all others' together. */
  metricsText(own: Metrics): Promise<string>;
}

/** Starts `count` threads. Rejects when the first cannot have the address. */
export async function startThreads(
  options: TrafficOptions,
  count: number,
  sink: LogSink,
): Promise<Threads> {
  const first = new TrafficThread(options, sink, { index: 0, count, port: options.port });
  const { address, port } = await first.listening;
  const others = Array.from(
    { length: count - 1 },
    (_, other) => new TrafficThread(options, sink, { index: other + 1, count, port }),
  );
  const threads = [first, ...others];
  await Promise.all(threads.map((thread) => thread.listening));
  const questions = openQuestions(options);
  return {
    address,
    port,
    // Each thread counts its own; the sum is made with the metrics.
    tokenCacheEntries: () => 0,
    upstreamLoad: () => ({ inFlight: 0, waiting: 0 }),
    asked: questions.gate,
    prepare: (changed) =>
      prepareAll([
        () => questions.prepare(changed.configuration),
        () => prepareThreads(threads, changed),
      ]),
    async drain() {
      const finished = await Promise.all(threads.map((thread) => thread.drain()));
      await questions.close();
      return finished.every(Boolean);
    },
    async abandon() {
      await Promise.all([questions.close(), ...threads.map((thread) => thread.abandon())]);
    },
    async metricsText(own) {
      return own.textWith(await Promise.all(threads.map((thread) => thread.metrics())));
    },
  };
}

/** All of them, or none. */
async function prepareThreads(
  threads: readonly TrafficThread[],
  changed: TrafficChange,
): Promise<Change> {
  const prepared = await Promise.allSettled(threads.map((thread) => thread.prepare(changed)));
  const drop = (): void => {
    for (const thread of threads) thread.drop();
  };
  const refused = prepared.find(({ status }) => status === "rejected");
  if (refused?.status === "rejected") {
    drop();
    throw refused.reason;
  }
  return {
    async commit() {
      await Promise.all(threads.map((thread) => thread.commit(changed)));
    },
    drop,
  };
}
