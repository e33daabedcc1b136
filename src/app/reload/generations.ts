import { isDeepStrictEqual } from "node:util";
import type { ApiKeySet } from "../../tokens/api-keys/api-keys.ts";
import type { Configuration } from "../../config/configuration.ts";
import type { Forwarder } from "../../upstream/forward.ts";
import type { TargetState } from "../../upstream/pool/target.ts";
import type { UpstreamLoad } from "../../upstream/pool/upstreams.ts";
import type { Rules, RulesInForce } from "../../server/request/gate.ts";
import type { OpenWebSocket } from "../../upstream/websocket/open-websocket.ts";
import type { ListenChanges } from "../../server/listener/listen-options.ts";
import { createIntake } from "../../server/request/intake.ts";
import { callEach } from "../../lib/async/isolation.ts";
import type { Leased } from "../../lib/async/leased.ts";
import type { Networks } from "../../lib/http/networks.ts";
import { intakeOptionsOf, realmOf, type ServerTls, stallOf } from "../gate/from-configuration.ts";
import { openGate, type OpenGate } from "../gate/open-gate.ts";
import type { GateOptions } from "../gate/gate-options.ts";
import { tracedIntake } from "../observation.ts";
import { warnUnknownClients } from "../client-warnings.ts";

/** Everything that handles connections and requests under one configuration. A reload replaces it as a whole. */
export interface Generation extends Rules {
  readonly configuration: Configuration;
  readonly opened: Leased<OpenGate>;
  readonly trustedProxies: Networks;
  readonly apiKeys: ApiKeySet;
  readonly listening: ListenChanges;
}

/**
 * Opens the generation that the configuration describes.
 *
 * @param before the previous generation, whose verified tokens and connections are reused if their settings are the
 * same.
 * @throws ConfigError as `openGate` does; then `before` is unchanged.
 */
export function openGeneration(
  options: GateOptions & { readonly tls: ServerTls },
  before?: Generation,
): Generation {
  const { configuration, tls } = options;
  const { server } = configuration;
  const reading = intakeOptionsOf(configuration);
  const intake = createIntake({ ...reading, unknown: warnUnknownClients(options) });
  const clientAuthorities = tls?.clientCertificates?.authorities;
  const opened = openGate({ ...options, clientAuthorities }, before?.opened.value);
  return {
    configuration,
    opened,
    gate: opened.value.gate,
    intake: tracedIntake(intake, options.tracing),
    realm: realmOf(configuration),
    streams: configuration.tokens.streams,
    trustedProxies: reading.trustedProxies,
    apiKeys: options.files.apiKeys,
    listening: {
      tls,
      http2: server.http2,
      limits: server.limits,
      timeouts: { ...server.timeouts, stall: stallOf(configuration) },
    },
  };
}

/**
 * The generation in force, and the earlier gates that still serve requests. Gates share parts with the same settings.
 */
export class Generations implements RulesInForce {
  readonly #all = new Set<Leased<OpenGate>>();
  /** The generation in force. Only `replace` changes it. */
  current: Generation;
  ruling = 0;
  draining = false;

  constructor(first: Generation) {
    this.current = first;
    this.#all.add(first.opened);
  }

  /** Puts another generation in force. The previous gate closes after its last request. */
  replace(next: Generation): void {
    const { opened } = this.current;
    this.current = next;
    this.#all.add(next.opened);
    void opened.retire().then(() => this.#all.delete(opened));
  }

  /** Returns the load of an upstream's targets, including that of earlier gates. */
  load(name: string): UpstreamLoad {
    const upstreams = new Set(
      this.#opened().map(({ kept }) => kept.upstreams.get(name)?.value.value),
    );
    const loads = [...upstreams].flatMap((upstream) => upstream?.load ?? []);
    return {
      inFlight: loads.reduce((sum, { inFlight }) => sum + inFlight, 0),
      waiting: loads.reduce((sum, { waiting }) => sum + waiting, 0),
      leftOut: loads.at(-1)?.leftOut ?? 0,
      targets: loads.at(-1)?.targets ?? 0,
    };
  }

  /** Returns the state of each target of the configuration in force. */
  targets(): TargetState[] {
    const { kept } = this.current.opened.value;
    return [...kept.upstreams.values()].flatMap(({ value }) => value.value.targets);
  }

  /** Returns the open WebSockets, including those of earlier gates. */
  openWebSockets(): OpenWebSocket[] {
    return this.#forwarders().flatMap((forwarder) => [...forwarder.openWebSockets]);
  }

  closeWebSockets(): void {
    callEach(this.openWebSockets(), (webSocket) => webSocket.sendGoingAway());
  }

  /** Closes everything, even if it is still in use. */
  async close(): Promise<void> {
    const parts = new Set(this.#opened().flatMap((opened) => opened.parts));
    await Promise.all([...parts].map((part) => part.close()));
  }

  #forwarders(): Forwarder[] {
    return [...new Set(this.#opened().map(({ kept }) => kept.forwarder.value))];
  }

  #opened(): OpenGate[] {
    return Array.from(this.#all, ({ value }) => value);
  }
}

/** Returns the trusted proxies of the generation in force. */
export function trustedProxiesOf(generations: Generations): Networks {
  return {
    get empty() {
      return generations.current.trustedProxies.empty;
    },
    has: (address) => generations.current.trustedProxies.has(address),
  };
}

type Decisive = Pick<Generation, "configuration" | "apiKeys" | "listening">;

/** Whether the next generation may refuse a request that the current one permits. */
export function decidesOtherwise(before: Decisive, after: Decisive): boolean {
  const decisive = ({ configuration, apiKeys, listening }: Decisive): unknown[] => {
    const { routes, tokens, authorization, upstreams, browser, cors } = configuration;
    const { clientCertificates } = listening.tls ?? {};
    const sections = [routes, tokens, authorization, Object.keys(upstreams), browser, cors];
    return [...sections, apiKeys, clientCertificates];
  };
  return !isDeepStrictEqual(decisive(before), decisive(after));
}
