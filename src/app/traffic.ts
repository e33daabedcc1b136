import { isDeepStrictEqual } from "node:util";
import type { Change } from "../core/change.ts";
import type { IssuerState } from "../core/status.ts";
import type { UpstreamLoad } from "../upstream/pool/upstreams.ts";
import type { Gate } from "../server/request/gate.ts";
import type { PublishRevocations } from "../core/revocation.ts";
import { openTracing } from "../observe/tracing/tracing-settings.ts";
import type { ThreadCounts } from "../lib/async/shared-counts.ts";
import type { ConnectionLedger } from "../server/listener/connection-ledger.ts";
import { drain } from "../server/listener/draining.ts";
import { listen, type Listener } from "../server/listener/listen.ts";
import { Pipeline } from "../server/request/pipeline.ts";
import { StreamEnds } from "../server/request/stream-ends.ts";
import { reconsider } from "../server/request/reconsider.ts";
import type { OwnKeys } from "../tokens/keys/own-keys.ts";
import type { RevocationList } from "../tokens/revocation/revocation-list.ts";
import { TrustedKeys } from "../tokens/trusted/trusted-keys.ts";
import { createObservedReading, type FairReadingOptions } from "./client-warnings.ts";
import type { ServerTls } from "./gate/from-configuration.ts";
import type { GateOptions } from "./gate/gate-options.ts";
import { RemoteOutages } from "./gate/remote-checks.ts";
import {
  decidesOtherwise,
  type Generation,
  Generations,
  openGeneration,
  trustedProxiesOf,
} from "./reload/generations.ts";
import type { ReloadStates } from "./reload/reload-states.ts";
import { logoutWith } from "./revoking.ts";
import type { ThreadState } from "./threads/thread-state.ts";
import { tracedObserver } from "./observation.ts";

/** The options of a gate that the traffic itself sets. */
type OwnOptions = "trustedKeys" | "logOut" | "reading" | "tracing" | "keysChanged" | "outages";

export interface TrafficOptions extends Omit<GateOptions, OwnOptions> {
  readonly keys: OwnKeys;
  readonly assertionKeys: OwnKeys;
  /** The revocations that this thread knows. */
  readonly revocations: RevocationList;
  readonly publish: PublishRevocations;
  /** Counts the bytes buffered on the connections of this thread. */
  readonly buffered: ConnectionLedger;
  readonly tls: ServerTls;
  /** The port to listen on; 0 for a free one. */
  readonly port: number;
  /** Whether other threads accept on the same port. */
  readonly shared: boolean;
  readonly nextId: () => number;
  /** Counters for open connections and requests in flight, shared with other threads. */
  readonly connections?: ThreadCounts;
  readonly inFlight: NonNullable<GateOptions["inFlight"]>;
  readonly usage?: FairReadingOptions["usage"];
  /** Receives the reload state of each file of trusted keys. */
  readonly reloads: ReloadStates;
  /** Called with the state of all trusted issuers when the keys of one change. Omitted if `issuers` is polled. */
  readonly issuersChanged?: (states: readonly IssuerState[]) => void;
}

/** The options that a reload can change. OpenSSL must have accepted the certificate before. */
export type TrafficChange = Pick<TrafficOptions, "configuration" | "tls" | "files">;

/** The part of Sallyport that serves clients, in one thread or several: listener, gate, connections to the backends. */
export interface Traffic {
  readonly address: string;
  readonly port: number;
  readonly tokenCacheEntries: () => number;
  readonly upstreamLoad: (upstream: string) => UpstreamLoad;
  /** Returns the state of all threads that answer, merged. */
  state(): Promise<ThreadState>;
  /** Returns all trusted issuers, and whether their tokens can be verified now. */
  issuers(): readonly IssuerState[];
  /** Calls a function with the gate in force, and keeps the gate open until the result has arrived. */
  query<Answer>(question: (gate: Gate) => Promise<Answer>): Promise<Answer>;
  /**
   * Prepares another configuration. Committing it ends open requests that it would refuse; others continue, and caches
   * are kept. Ignores keys that need a restart.
   */
  prepare(changed: TrafficChange): Promise<Change>;
  /** Drains the listener. Resolves with whether all requests finished in time. */
  drain(): Promise<boolean>;
  /** Ends at once, without waiting for running requests. */
  abandon(): Promise<void>;
}

/**
 * Starts accepting clients: a listener passes requests to a pipeline, which uses the generation in force to read and
 * decide them. Rejects if the address is not available.
 */
export async function startTraffic(options: TrafficOptions): Promise<Traffic> {
  const { configuration, port, shared, nextId, buffered, reloads, clock, log } = options;
  const tracing = await openTracing({ ...options, env: process.env });
  const observer = tracedObserver(options.observer, tracing);
  const stateOf = () => reloads.add();
  const trustedKeys = new TrustedKeys({ ...options, stateOf, keepsCopies: true });
  const reading = createObservedReading({ observer, clock, log, usage: options.usage });
  let traffic: ThreadTraffic | undefined;
  const keysChanged = (): void => traffic?.reconsiderSoon();
  const outages = new RemoteOutages(clock);
  const logOut = logoutWith(options);
  const common = { tracing, trustedKeys, reading, logOut, keysChanged, outages };
  const generations = new Generations(openGeneration({ ...options, ...common }));
  const streams = new StreamEnds({
    ...options,
    rules: generations,
    ended: options.observer.streamEnded,
  });
  const pipeline = new Pipeline({
    rules: generations,
    nextId,
    streams,
    observer,
    log,
    clock,
  });
  const trustedProxies = trustedProxiesOf(generations);
  const listener = await listen({
    ...configuration.server.listen,
    port,
    shared,
    trustedProxies,
    proxyProtocol: configuration.server.proxyProtocol === "accept",
    ...generations.current.listening,
    pipeline,
    buffered,
    reading,
    nextId,
    rules: generations,
    observer,
    log,
    counts: options.connections,
  });
  traffic = new ThreadTraffic(options, { common, generations, listener, streams });
  return traffic;
}

interface TrafficParts {
  /** The options of every generation. */
  readonly common: Omit<GateOptions, keyof TrafficOptions> & { readonly outages: RemoteOutages };
  readonly generations: Generations;
  readonly listener: Listener;
  readonly streams: StreamEnds;
}

class ThreadTraffic implements Traffic {
  readonly address: string;
  readonly port: number;
  readonly #options: TrafficOptions;
  readonly #parts: TrafficParts;
  #reconsidering: NodeJS.Immediate | undefined;

  constructor(options: TrafficOptions, parts: TrafficParts) {
    this.address = parts.listener.address;
    this.port = parts.listener.port;
    this.#options = options;
    this.#parts = parts;
  }

  readonly tokenCacheEntries = (): number =>
    this.#parts.generations.current.opened.value.tokenCacheEntries();

  readonly upstreamLoad = (upstream: string): UpstreamLoad =>
    this.#parts.generations.load(upstream);

  async state(): Promise<ThreadState> {
    const { common, generations } = this.#parts;
    const outages = common.outages.list();
    return { targets: generations.targets(), outages, issuers: this.issuers() };
  }

  issuers(): readonly IssuerState[] {
    return this.#parts.common.trustedKeys.states();
  }

  query<Answer>(question: (gate: Gate) => Promise<Answer>): Promise<Answer> {
    return this.#parts.generations.current.opened.use(({ gate }) => question(gate));
  }

  async prepare(changed: TrafficChange): Promise<Change> {
    const { common, generations } = this.#parts;
    const next = openGeneration({ ...this.#options, ...changed, ...common }, generations.current);
    return {
      commit: async () => this.#commit(next),
      rollback: () => void next.opened.retire(),
    };
  }

  #commit(next: Generation): void {
    const { common, listener, generations } = this.#parts;
    const { current } = generations;
    // Unchanged TLS settings are not applied again, so that clients can still resume their sessions.
    const same = isDeepStrictEqual(next.listening.tls, current.listening.tls);
    listener.change(same ? { ...next.listening, tls: undefined } : next.listening);
    this.#options.buffered.setLimit(next.configuration.server.limits.bufferedBytes);
    generations.replace(next);
    if (decidesOtherwise(current, next)) this.reconsiderSoon();
    common.trustedKeys.refresh();
  }

  /** Rechecks all open requests and WebSockets at the end of the turn, once for all changes in it. */
  reconsiderSoon(): void {
    const { log } = this.#options;
    this.#parts.generations.ruling += 1;
    this.#reconsidering ??= setImmediate(() => {
      this.#reconsidering = undefined;
      this.#reconsider().catch((error: unknown) =>
        log.error("open requests could not be rechecked", { error }),
      );
    });
  }

  async #reconsider(): Promise<void> {
    const { listener, generations, streams } = this.#parts;
    const { configuration, realm } = generations.current;
    const { ruling } = generations;
    await this.query((gate) =>
      reconsider({
        gate,
        hasUpstream: (name) => Object.hasOwn(configuration.upstreams, name),
        requests: listener.requests(),
        webSockets: () => generations.openWebSockets(),
        realm,
        superseded: () => generations.ruling !== ruling,
        ended: this.#options.observer.streamEnded,
      }),
    );
    streams.settle();
  }

  async drain(): Promise<boolean> {
    const { common, listener, generations, streams } = this.#parts;
    generations.draining = true;
    const closeWebSockets = (): void => generations.closeWebSockets();
    const times = generations.current.configuration.server.drain;
    const finished = await drain({ ...times, listener, closeWebSockets, log: this.#options.log });
    streams.close();
    await generations.close();
    await common.tracing?.close();
    return finished;
  }

  async abandon(): Promise<void> {
    const { listener, generations, streams } = this.#parts;
    streams.close();
    const closed = listener.close();
    listener.closeAll();
    await Promise.all([closed, generations.close()]);
  }
}
