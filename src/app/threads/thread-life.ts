import { Worker } from "node:worker_threads";
import { GateError } from "../../core/request/errors.ts";
import type { IssuerState } from "../../core/status.ts";
import { releaseThread, SharedByteCounters } from "../../lib/async/shared-counts.ts";
import { expose, NoReplyError, RpcClient } from "../../core/thread-rpc.ts";
import { workerFile } from "../../lib/async/worker-file.ts";
import { type LogSink, MAX_WAITING } from "../../observe/log/log-sink.ts";
import { LogBacklog } from "./log-backlog.ts";
import { createPulse, watchPulse } from "./pulse.ts";
import type { ReloadState } from "../reload/reload-states.ts";
import type { MainApi, ThreadApi, ThreadData, ThreadPlacement } from "./thread.ts";
import type { TrafficOptions } from "../traffic.ts";
import type { KeyRing } from "../../tokens/keys/key-ring.ts";

const OWN_KEYS = ["keys", "assertionKeys"] as const;

/** All of Sallyport's own keys, in the form in which they are posted to a thread. */
export type KeyRings = Readonly<Record<(typeof OWN_KEYS)[number], KeyRing>>;

/**
 * Limits for calls to a thread whose event loop turns but makes no progress. A thread that hangs is terminated after
 * `HUNG_CHECKS`, which ends all its calls.
 */
const LIMITS = { timeoutMs: 60_000, maxPending: () => 1_000 };

/**
 * One life of a traffic thread, from the start of its worker until the worker has terminated. All calls to and from it
 * belong to this life: the result of a login that it began never goes to its successor.
 */
export class ThreadLife {
  /** Whether `terminate` was called. */
  terminated = false;
  /** Whether the worker has terminated. */
  hasExited = false;
  /** Reports whether its event loop has turned since the last call. */
  readonly turned: () => boolean;
  #listens = false;
  /** The state of the trusted issuers as last reported. */
  #issuers: readonly IssuerState[] = [];
  readonly #worker: Worker;
  readonly #options: TrafficOptions;
  readonly #sink: LogSink;
  readonly #backlog: LogBacklog;
  readonly #state: ReloadState;
  readonly #listening = Promise.withResolvers<{ address: string; port: number }>();
  /** Resolves when the thread listens. Rejects if it terminates before that. */
  readonly listening = this.#listening.promise;
  readonly #exited = Promise.withResolvers<void>();
  /** Resolves when it has terminated. */
  readonly exited = this.#exited.promise;
  readonly #calls: RpcClient<ThreadApi>;

  constructor(
    options: TrafficOptions,
    placement: ThreadPlacement,
    sink: LogSink,
    state: ReloadState,
  ) {
    const { configuration, files, version, revocations, tls, log } = options;
    this.#options = options;
    this.#sink = sink;
    this.#backlog = new LogBacklog(placement.backlog, placement.index, MAX_WAITING);
    this.#state = state;
    const pulse = createPulse();
    this.turned = watchPulse(pulse);
    const { memory: weights } = options.buffered;
    const rings = { keys: options.keys.ring, assertionKeys: options.assertionKeys.ring };
    const held = { rings, revoked: revocations.news(), pulse, weights };
    const own = { configuration, files, version, tls, ...held };
    const workerData: ThreadData = { ...own, ...placement };
    const worker = new Worker(workerFile("thread", import.meta.url), { workerData });
    this.#worker = worker;
    this.#calls = new RpcClient<ThreadApi>(worker, LIMITS);
    expose(worker, this.#mainApi());
    const ends = [
      ...OWN_KEYS.map((name) =>
        options[name].onChange(() => this.#calls.notify("keys", name, options[name].ring)),
      ),
      revocations.onChange((news) => this.#calls.notify("revoked", news)),
    ];
    worker.on("error", (error) => {
      log.error("a traffic thread failed", { thread: placement.index, error });
      this.#listening.reject(error);
    });
    worker.on("exit", () => {
      this.hasExited = true;
      new SharedByteCounters(weights, placement.index + 1).clear();
      releaseThread(placement.connections, placement.index);
      releaseThread(placement.inFlight, placement.index);
      this.#countLostLines();
      this.#backlog.clear();
      for (const end of ends) end();
      state.removed();
      this.#listening.reject(new Error("the thread ended before it listened"));
      this.#calls.close();
      this.#exited.resolve();
    });
    // Nobody may be waiting for it: this prevents an unhandled rejection.
    this.listening.catch(() => undefined);
  }

  /** Whether it accepts clients and answers calls. */
  get serves(): boolean {
    return this.#listens && !this.terminated && !this.hasExited;
  }

  /** All trusted issuers as last reported; empty for a thread that does not serve. */
  get issuers(): readonly IssuerState[] {
    return this.serves ? this.#issuers : [];
  }

  /**
   * Calls a function of the thread. Resolves with undefined if the thread will not answer any more. Rejects with the
   * error of the function.
   */
  async call<Name extends keyof ThreadApi>(
    name: Name,
    ...args: Parameters<ThreadApi[Name]>
  ): Promise<Awaited<ReturnType<ThreadApi[Name]>> | undefined> {
    const answer = await this.#calls.call(name, ...args).catch(noReply);
    this.#countLostLines();
    return answer;
  }

  /**
   * Prepares a change, or puts it in force. Resolves when that is done, or when the thread will not answer any more.
   * Rejects if it cannot be prepared. Terminates a thread that does not answer in time; its successor starts with the
   * change.
   */
  async change<Name extends "prepare" | "commit">(
    name: Name,
    ...args: Parameters<ThreadApi[Name]>
  ): Promise<void> {
    try {
      await this.#calls.call(name, ...args);
    } catch (error) {
      noReply(error);
      if (error instanceof NoReplyError && error.reason === "late") this.terminate();
    }
  }

  rollback(): void {
    this.#calls.notify("rollback");
  }

  /** Drains the thread. Resolves with undefined if it will not answer any more, or not within `limitMs`. */
  async drain(limitMs: number) {
    return this.#calls.callWithTimeout(limitMs, "drain").catch(noReply);
  }

  /** Terminates the thread at once, with its connections, and ends all calls to it. */
  terminate(): void {
    this.terminated = true;
    void this.#worker.terminate();
    this.#calls.close();
  }

  /** The functions of the main thread that the thread may call. */
  #mainApi(): MainApi {
    const { logins, signIns } = this.#options;
    return {
      logIn: (...attempt) => logins.logIn(...attempt).catch(notLoggedIn),
      beginSignIn: (...begun) => signIns.beginSignIn(...begun).catch(notLoggedIn),
      finishSignIn: (...returned) => signIns.finishSignIn(...returned).catch(notLoggedIn),
      signOutUrl: (...left) => signIns.signOutUrl(...left),
      endSessions: (...ended) => signIns.endSessions(...ended).catch(notLoggedIn),
      publish: (revocations) => this.#options.publish(revocations),
      settleRates: async (spendings) => this.#options.settleRates?.(spendings),
      settleConcurrency: async (counts) => this.#options.settleConcurrency?.(counts),
      rememberProof: async (...used) => this.#options.rememberProof?.(...used),
      listening: (address, port) => {
        this.#listens = true;
        this.#listening.resolve({ address, port });
      },
      reloaded: (problems) => this.#state.reloaded(problems),
      issuers: (states) => {
        this.#issuers = states;
      },
      log: (lines, bytes) => {
        for (const line of lines) this.#sink.write(line);
        this.#backlog.received(bytes);
        this.#countLostLines();
      },
    };
  }

  #countLostLines(): void {
    const lines = this.#backlog.collectLost();
    if (lines > 0) this.#sink.countLost(lines);
  }
}

function noReply(error: unknown): undefined {
  if (!(error instanceof NoReplyError)) throw error;
}

/** Passes on only errors of the gate; others are replaced with an internal error without details. */
function notLoggedIn(error: unknown): never {
  throw error instanceof GateError ? error : new GateError("internal", { reason: "login" });
}
