import type { ListenChanges } from "../server/listen.ts";
import { createIntake, type Intake } from "../server/intake.ts";
import { networks, type Networks } from "../lib/networks.ts";
import { realmOf, type ServerTls, stallOf } from "./from-configuration.ts";
import { type GateOptions, openGate, type OpenGate } from "./gate.ts";
import { tracedIntake } from "./traced.ts";
import { tellUnknownClients } from "./unknown-clients.ts";

/** All that one configuration makes of connections and requests. A reload makes another and puts it in the place of this. */
export interface Generation {
  readonly opened: OpenGate;
  readonly intake: Intake;
  readonly realm: string;
  readonly trustedProxies: Networks;
  readonly listening: ListenChanges;
}

/**
 * @param before whose verified tokens and connections to backends are taken over, as far as they are made from the same.
 * @throws ConfigError when a file that the configuration names is broken; then `before` is as it was.
 */
export function openGeneration(
  options: GateOptions & { readonly tls: ServerTls },
  before?: Generation,
): Generation {
  const { configuration, tls, log, clock } = options;
  const { server } = configuration;
  const trustedProxies = networks(server.trustedProxies);
  const unknown = tellUnknownClients(log, clock);
  const intake = createIntake(trustedProxies, server.limits.headers, unknown);
  return {
    opened: openGate(options, before?.opened),
    intake: tracedIntake(intake, options.tracing),
    realm: realmOf(configuration),
    trustedProxies,
    listening: {
      tls,
      limits: server.limits,
      timeouts: { ...server.timeouts, stall: stallOf(configuration) },
    },
  };
}
