import type { Configuration } from "../config/schema.ts";
import type { Log } from "../core/log.ts";
import type { LoginService } from "../core/login-service.ts";
import type { Observer } from "../core/observer.ts";
import type { Clock } from "../lib/clock.ts";
import { networks } from "../lib/networks.ts";
import { drain } from "../server/drain.ts";
import { createIntake } from "../server/intake.ts";
import { listen } from "../server/listen.ts";
import { Pipeline } from "../server/pipeline.ts";
import type { SigningKeys } from "../tokens/signing-keys.ts";
import { realmOf, type ServerTls, stallOf } from "./from-configuration.ts";
import { openGate } from "./gate.ts";

export interface TrafficOptions {
  readonly configuration: Configuration;
  readonly version: string;
  readonly keys: SigningKeys;
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
  /** Ends in good order; resolves with whether everything that ran ended by itself. */
  drain(): Promise<boolean>;
  /** Ends at once, whatever runs. */
  abandon(): Promise<void>;
}

/** Starts to accept clients. Rejects when the address cannot be had. */
export async function startTraffic(options: TrafficOptions): Promise<Traffic> {
  const { configuration, tls, port, shared, nextId, clock, log, observer } = options;
  const { server } = configuration;
  const { gate, tokenCacheEntries, close } = openGate(options);
  const realm = realmOf(configuration);
  let draining = false;
  const pipeline = new Pipeline({
    gate: () => gate,
    intake: createIntake(networks(server.trustedProxies)),
    nextId,
    realm,
    observer,
    log,
    clock,
    draining: () => draining,
  });
  const { limits } = server;
  const timeouts = { ...server.timeouts, stall: stallOf(configuration) };
  const { host } = server.listen;
  const listener = await listen({
    ...{ host, port, shared, tls, limits, timeouts },
    ...{ pipeline, nextId, realm, observer, log },
  });
  return {
    address: listener.address,
    port: listener.port,
    tokenCacheEntries,
    async drain() {
      draining = true;
      const { delay, timeout } = server.drain;
      const closeWebSockets = (): void => gate.forwarder.closeWebSockets();
      const finished = await drain({ listener, delay, timeout, closeWebSockets, log });
      await close();
      return finished;
    },
    async abandon() {
      const closed = listener.close();
      listener.closeAll();
      await Promise.all([closed, close()]);
    },
  };
}
