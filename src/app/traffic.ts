import { isDeepStrictEqual } from "node:util";
import type { Configuration } from "../config/schema.ts";
import type { Change } from "../core/change.ts";
import type { UpstreamLoad } from "../core/forwarder.ts";
import type { Gate } from "../core/gate.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import type { Networks } from "../lib/networks.ts";
import { openTracing } from "../observe/tracing.ts";
import { drain } from "../server/drain.ts";
import { listen } from "../server/listen.ts";
import { Pipeline } from "../server/pipeline.ts";
import type { OwnKeys } from "../tokens/own-keys.ts";
import { TrustedKeys } from "../tokens/trusted-keys.ts";
import type { ServerTls } from "./from-configuration.ts";
import { GatesInUse } from "./gates-in-use.ts";
import { openGeneration } from "./generation.ts";
import type { ReloadStates } from "./reload-states.ts";
import { tracedObserver } from "./traced.ts";

export interface TrafficOptions {
  readonly configuration: Configuration;
  readonly version: string;
  readonly keys: OwnKeys;
  readonly logins: LoginService;
  readonly tls: ServerTls;
  /** The port to take; 0 for a free one. */
  readonly port: number;
  /** Whether other threads accept on the port, too. */
  readonly shared: boolean;
  readonly nextId: () => number;
  /** Where each file of trusted keys tells whether it could be read again. */
  readonly reloads: ReloadStates;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
}

/** What a running one can follow; the certificate is one that OpenSSL takes. */
export type TrafficChange = Pick<TrafficOptions, "configuration" | "tls">;

/** The part of Sallyport that each thread has for itself: a listener, a gate, connections to the backends. */
export interface Traffic {
  readonly address: string;
  readonly port: number;
  readonly tokenCacheEntries: () => number;
  readonly upstreamLoad: (upstream: string) => UpstreamLoad;
  /** The gate in force, or one like it, to be asked what it would do. */
  asked(): Gate;
  /**
   * Prepares another configuration; put in force, it costs no request, no WebSocket and nothing that is remembered. What
   * needs a restart is not looked at. Rejects with a `ConfigError` when a file that it names is broken.
   */
  prepare(changed: TrafficChange): Promise<Change>;
  /** Ends in good order; resolves with whether everything that ran ended by itself. */
  drain(): Promise<boolean>;
  /** Ends at once, whatever runs. */
  abandon(): Promise<void>;
}

/** Starts to accept clients. Rejects when the address cannot be had. */
export async function startTraffic(options: TrafficOptions): Promise<Traffic> {
  const { port, shared, nextId, clock, log, version } = options;
  let { configuration } = options;
  const tracing = await openTracing({ env: process.env, version, log });
  const observer = tracedObserver(options.observer, tracing);
  const trustedKeys = new TrustedKeys({ clock, log, stateOf: () => options.reloads.add() });
  let current = openGeneration({ ...options, tracing, trustedKeys });
  const gates = new GatesInUse(current.opened);
  const realm = (): string => current.realm;
  let draining = false;
  const pipeline = new Pipeline({
    gate: () => current.opened.gate,
    intake: () => current.intake,
    nextId,
    realm,
    observer,
    log,
    clock,
    draining: () => draining,
  });
  const { host } = configuration.server.listen;
  const trustedProxies: Networks = {
    get empty() {
      return current.trustedProxies.empty;
    },
    has: (address) => current.trustedProxies.has(address),
  };
  const listener = await listen({
    ...{ host, port, shared, trustedProxies, ...current.listening },
    ...{ pipeline, nextId, realm, observer, log },
  });
  return {
    address: listener.address,
    port: listener.port,
    tokenCacheEntries: () => current.opened.tokenCacheEntries(),
    upstreamLoad: (upstream) => gates.load(upstream),
    asked: () => current.opened.asked,
    async prepare(changed) {
      const next = openGeneration({ ...options, ...changed, tracing, trustedKeys }, current);
      return {
        async commit() {
          // With the same certificate clients go on resuming their sessions.
          const same = isDeepStrictEqual(next.listening.tls, current.listening.tls);
          listener.change(same ? { ...next.listening, tls: undefined } : next.listening);
          gates.replace(next.opened);
          current = next;
          ({ configuration } = changed);
          trustedKeys.refresh();
        },
        drop: () => gates.drop(next.opened),
      };
    },
    async drain() {
      draining = true;
      const { delay, timeout } = configuration.server.drain;
      const closeWebSockets = (): void => gates.closeWebSockets();
      const finished = await drain({ listener, delay, timeout, closeWebSockets, log });
      await gates.close();
      await tracing?.close();
      return finished;
    },
    async abandon() {
      const closed = listener.close();
      listener.closeAll();
      await Promise.all([closed, gates.close()]);
    },
  };
}
