import { setTimeout as delay } from "node:timers/promises";
import { Worker } from "node:worker_threads";
import { ConfigError } from "../core/config-problem.ts";
import type { LogSink } from "../observe/log-sink.ts";
import { logInFor } from "./posted-login.ts";
import type { ReloadState } from "./reload-states.ts";
import type { ThreadBeginnings } from "./thread.ts";
import type { FromThread, PostedFault, ToThread } from "./thread-messages.ts";
import type { TrafficChange, TrafficOptions } from "./traffic.ts";

/** TypeScript in `src`; in `dist` an entry of the bundle, which lies beside the chunk that this is in. */
const FILE = new URL(
  import.meta.url.endsWith(".ts") ? "./thread.ts" : "./thread.js",
  import.meta.url,
);

/** A thread that fails at its start would do so again at once: so long is waited, in milliseconds. */
const REST_MS = 1_000;

interface Place {
  readonly index: number;
  readonly count: number;
  readonly port: number;
}

/** One traffic thread as the main thread sees it. One that dies is replaced. */
export class TrafficThread {
  #options: TrafficOptions;
  readonly #sink: LogSink;
  readonly #state: ReloadState;
  #worker: Worker;
  /** Whether it answers what it is asked. */
  #runs = false;
  #started = Promise.withResolvers<{ address: string; port: number }>();
  readonly #drained = Promise.withResolvers<boolean>();
  #prepared: PromiseWithResolvers<void> | undefined;
  #committed: PromiseWithResolvers<void> | undefined;
  /** The one that was asked to prepare a change. */
  #asked: Worker | undefined;
  readonly #scrapes = new Map<number, (metrics: readonly object[]) => void>();
  #calls = 0;
  #draining = false;
  /** What it counted until its end; undefined while it runs. */
  #counted: readonly object[] | undefined;

  constructor(options: TrafficOptions, sink: LogSink, place: Place) {
    this.#options = options;
    this.#sink = sink;
    this.#state = options.reloads.add();
    this.#worker = this.#start(place);
  }

  get listening(): Promise<{ readonly address: string; readonly port: number }> {
    return this.#started.promise;
  }

  /** Rejects with what is wrong; a thread that dies over something else leaves that to the one that replaces it. */
  prepare(changed: TrafficChange): Promise<void> {
    this.#asked = undefined;
    if (this.#draining || !this.#runs) return Promise.resolve();
    this.#prepared = Promise.withResolvers<void>();
    this.#asked = this.#worker;
    this.#post({ kind: "prepare", ...changed });
    return this.#prepared.promise;
  }

  /** Also for a thread that comes in the place of this one. */
  commit(changed: TrafficChange): Promise<void> {
    if (this.#draining) return Promise.resolve();
    this.#options = { ...this.#options, ...changed };
    if (!this.#runs) return Promise.resolve();
    this.#committed = Promise.withResolvers<void>();
    if (this.#asked !== this.#worker) this.#post({ kind: "prepare", ...changed });
    this.#post({ kind: "commit" });
    return this.#committed.promise;
  }

  drop(): void {
    this.#post({ kind: "drop" });
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

  /** Nothing from a thread that fails before it answers. */
  metrics(): Promise<readonly object[]> {
    if (this.#counted !== undefined) return Promise.resolve(this.#counted);
    if (!this.#runs) return Promise.resolve([]);
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
    let listened = false;
    this.#runs = true;
    const forget = keys.onChange(() => this.#post({ kind: "keys", ring: keys.ring }));
    worker.on("message", (message: FromThread) => {
      listened ||= message.kind === "listening";
      this.#take(message);
    });
    worker.on("error", (error) => {
      this.#options.log.error("a traffic thread failed", { thread: place.index, error });
      this.#started.reject(error);
    });
    worker.on("exit", () => {
      forget();
      this.#runs = false;
      this.#state.gone();
      for (const resolve of this.#scrapes.values()) resolve(this.#counted ?? []);
      this.#scrapes.clear();
      this.#prepared?.resolve();
      this.#committed?.resolve();
      void this.#replace(place, listened ? 0 : REST_MS);
    });
    return worker;
  }

  /** A thread that never listened is a fault of the start, which `listening` tells; another one is started anew. */
  async #replace(place: Place, restMs: number): Promise<void> {
    const { port } = await this.#started.promise.catch(() => ({ port: 0 }));
    if (port !== 0 && !this.#draining && restMs > 0) await delay(restMs);
    // A drain waits for the one that runs then.
    if (this.#draining) this.#drained.resolve(false);
    else if (port !== 0) this.#worker = this.#start({ ...place, port });
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
      case "prepared":
        if (message.fault === undefined) this.#prepared?.resolve();
        else this.#prepared?.reject(revived(message.fault));
        break;
      case "committed":
        this.#committed?.resolve();
        break;
      case "reloaded":
        this.#state.reloaded(message.successful);
        break;
      case "log":
        for (const line of message.lines) this.#sink.write(line);
        break;
      case "drained":
        this.#counted = message.metrics;
        this.#drained.resolve(message.finished);
        break;
    }
  }

  #post(message: ToThread): void {
    this.#worker.postMessage(message);
  }
}

function revived({ message, problems }: PostedFault): Error {
  return problems.length > 0 ? new ConfigError(problems) : new Error(message);
}
