/** A forwarder to one backend, without the rest of Sallyport, for behaviour that only its interface shows. */
import { UNLIMITED } from "../../src/server/listener/connection-ledger.ts";
import { type ClientReading, UNMETERED } from "../../src/server/listener/reading/fair-reading.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Forwarder } from "../../src/upstream/forward.ts";
import { IDENTITY_PRESETS } from "../../src/upstream/headers/identity-headers.ts";
import { Upstream } from "../../src/upstream/pool/upstreams.ts";
import { UPSTREAM_DEFAULTS } from "./upstream-defaults.ts";

/**
 * @param target the URL of the backend
 * @param reading notified about the clients; by default nothing is
 * @returns the upstream `app`, which has one connection and must be closed, and the forwarder to it
 */
export function forwarderTo(target: string, reading: Partial<ClientReading> = {}) {
  const upstream = new Upstream(
    {
      ...UPSTREAM_DEFAULTS,
      name: "app",
      targets: [target],
      connections: 1,
      queue: { length: 10, timeout: 60_000 },
      timeouts: { connect: 5_000, response: 5_000, idle: 5_000 },
      websocket: { handshake: 5_000, idle: 5_000 },
    },
    systemClock,
  );
  const forwarder = new Forwarder({
    upstreams: new Map([["app", upstream]]),
    identityHeaders: IDENTITY_PRESETS.sallyport,
    buffered: UNLIMITED,
    reading: { ...UNMETERED, ...reading },
    clock: systemClock,
    observer: {
      upstreamAnswered: () => undefined,
      upstreamFailed: () => undefined,
      upstreamRetried: () => undefined,
      requestMirrored: () => undefined,
      webSocketOpened: () => undefined,
      webSocketClosed: () => undefined,
    },
  });
  return { upstream, forwarder };
}
