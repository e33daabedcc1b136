import type { Configuration } from "../config/schema.ts";
import type { Forwarder, UpstreamLoad } from "../core/forwarder.ts";
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
import type { ServerTls } from "./from-configuration.ts";
import { openGeneration } from "./generation.ts";
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
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
}

/** The part of Sallyport that each thread has for itself: a listener, a gate, connections to the backends. */
export interface Traffic {
  readonly address: string;
  readonly port: number;
  readonly tokenCacheEntries: () => number;
  readonly upstreamLoad: (upstream: string) => UpstreamLoad;
  /**
   * Puts another configuration in force, without losing a request, a WebSocket or what is remembered. Rejects with what is
   * wrong when it cannot, and then goes on as before. What needs a restart is not looked at.
   */
  change(changed: Pick<TrafficOptions, "configuration" | "tls">): Promise<void>;
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
  let current = openGeneration({ ...options, tracing });
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
  /** Those of earlier generations whose WebSockets may still be open; their idle connections end by themselves. */
  const earlier = new Set<Forwarder>();
  return {
    address: listener.address,
    port: listener.port,
    tokenCacheEntries: () => current.opened.tokenCacheEntries(),
    upstreamLoad: (upstream) => current.opened.upstreamLoad(upstream),
    async change(changed) {
      const next = openGeneration({ ...options, ...changed, tracing }, current);
      listener.change(next.listening);
      const { gate, kept } = current.opened;
      for (const each of earlier) if (each.webSockets() === 0) earlier.delete(each);
      if (gate.forwarder !== next.opened.gate.forwarder) earlier.add(gate.forwarder);
      if (kept.verifier !== next.opened.kept.verifier) kept.verifier.value.close();
      current = next;
      ({ configuration } = changed);
    },
    async drain() {
      draining = true;
      const { delay, timeout } = configuration.server.drain;
      const closeWebSockets = (): void => {
        for (const forwarder of [current.opened.gate.forwarder, ...earlier]) {
          forwarder.closeWebSockets();
        }
      };
      const finished = await drain({ listener, delay, timeout, closeWebSockets, log });
      await Promise.all([current.opened.close(), ...[...earlier].map((each) => each.close())]);
      await tracing?.close();
      return finished;
    },
    async abandon() {
      const closed = listener.close();
      listener.closeAll();
      await Promise.all([closed, current.opened.close()]);
    },
  };
}
