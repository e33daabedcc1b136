import { Worker } from "node:worker_threads";
import { GateError } from "../core/errors.ts";
import type { LoginService } from "../core/login-service.ts";
import type { LogSink } from "../observe/log-sink.ts";
import type { Metrics } from "../observe/metrics.ts";
import type { ThreadBeginnings } from "./thread.ts";
import type { FromThread, PostedFailure, PostedLogin, ToThread } from "./thread-messages.ts";
import type { Traffic, TrafficOptions } from "./traffic.ts";

/** TypeScript in `src`; in `dist` an entry of the bundle, which lies beside the chunk that this is in. */
const FILE = new URL(
  import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js",
  import.meta.url,
);

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
  return {
    address,
    port,
    // Each thread counts its own; the sum is made with the metrics.
    tokenCacheEntries: () => 0,
    upstreamLoad: () => ({ inFlight: 0, waiting: 0 }),
    async change(changed) {
      await Promise.all(threads.map((thread) => thread.change(changed)));
    },
    async drain() {
      const finished = await Promise.all(threads.map((thread) => thread.drain()));
      return finished.every(Boolean);
    },
    async abandon() {
      await Promise.all(threads.map((thread) => thread.abandon()));
    },
    async metricsText(own) {
      return own.textWith(await Promise.all(threads.map((thread) => thread.metrics())));
    },
  };
}

interface Place {
  readonly index: number;
  readonly count: number;
  readonly port: number;
}

/** One traffic thread as the main thread sees it. One that dies is replaced. */
class TrafficThread {
  #options: TrafficOptions;
  readonly #sink: LogSink;
  #worker: Worker;
  #started = Promise.withResolvers<{ address: string; port: number }>();
  readonly #drained = Promise.withResolvers<boolean>();
  #changed: PromiseWithResolvers<void> | undefined;
  readonly #scrapes = new Map<number, (metrics: readonly object[]) => void>();
  #calls = 0;
  #draining = false;

  constructor(options: TrafficOptions, sink: LogSink, place: Place) {
    this.#options = options;
    this.#sink = sink;
    this.#worker = this.#start(place);
  }

  get listening(): Promise<{ readonly address: string; readonly port: number }> {
    return this.#started.promise;
  }

  /** Also for a thread that comes in the place of this one. */
  change(changed: Pick<TrafficOptions, "configuration" | "tls">): Promise<void> {
    this.#options = { ...this.#options, ...changed };
    this.#changed = Promise.withResolvers<void>();
    this.#post({ kind: "change", ...changed });
    return this.#changed.promise;
  }

  drain(): Promise<boolean> {
    this.#draining = true;
    this.#post({ kind: "drain" });
    return this.#drained.promise;
  }

  async abandon(): Promise<void> {
    this.#draining = true;
    await this.#worker.terminate();
  }

  /** Nothing from a thread that ends before it answers. */
  metrics(): Promise<readonly object[]> {
    this.#calls += 1;
    const call = this.#calls;
    return new Promise((resolve) => {
      this.#scrapes.set(call, resolve);
      this.#post({ kind: "scrape", call });
    });
  }

  #start(place: Place): Worker {
    const { configuration, version, keys, tls } = this.#options;
    const own = { configuration, version, ring: keys.ring, tls };
    const workerData: ThreadBeginnings = { ...own, ...place };
    const worker = new Worker(FILE, { workerData });
    const forget = keys.onChange(() => this.#post({ kind: "keys", ring: keys.ring }));
    worker.on("message", (message: FromThread) => this.#take(message));
    worker.on("error", (error) => {
      this.#options.log.error("a traffic thread failed", { thread: place.index, error });
      this.#started.reject(error);
    });
    worker.on("exit", () => {
      forget();
      for (const resolve of this.#scrapes.values()) resolve([]);
      this.#scrapes.clear();
      this.#changed?.resolve();
      this.#drained.resolve(this.#draining);
      if (!this.#draining) void this.#replace(place);
    });
    return worker;
  }

  /** A thread that never listened is a fault of the start, which `listening` tells; another one is started anew. */
  async #replace(place: Place): Promise<void> {
    const { port } = await this.#started.promise.catch(() => ({ port: 0 }));
    if (port !== 0 && !this.#draining) this.#worker = this.#start({ ...place, port });
  }

  #take(message: FromThread): void {
    switch (message.kind) {
      case "listening":
        this.#started.resolve(message);
        break;
      case "logIn":
        void logInFor(message.attempt, this.#options.logins).then((result) =>
          this.#post({ ...result, call: message.call }),
        );
        break;
      case "metrics":
        this.#scrapes.get(message.call)?.(message.metrics);
        this.#scrapes.delete(message.call);
        break;
      case "changed":
        if (message.problem === undefined) this.#changed?.resolve();
        else this.#changed?.reject(new Error(message.problem));
        break;
      case "log":
        for (const line of message.lines) this.#sink.write(line);
        break;
      case "drained":
        this.#drained.resolve(message.finished);
        break;
    }
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}

type LoginResult =
  | { readonly kind: "loggedIn"; readonly token: string }
  | { readonly kind: "notLoggedIn"; readonly failure: PostedFailure };

async function logInFor(attempt: PostedLogin, logins: LoginService): Promise<LoginResult> {
  try {
    const { username, password, client } = attempt;
    return { kind: "loggedIn", token: await logins.logIn(username, password, client) };
  } catch (error) {
    const { code, message, reason, retryAfter } =
      error instanceof GateError ? error : new GateError("internal", { reason: "login" });
    return { kind: "notLoggedIn", failure: { code, message, reason, retryAfter } };
  }
}
