import { hostname } from "node:os";
import { inForce } from "../../config/effective/in-force.ts";
import type { Snapshot } from "../../config/snapshot.ts";
import type { Explanation, DryRunRequest } from "../../core/explanation.ts";
import type { IssuerState } from "../../core/issuer-state.ts";
import type { RecentEvents } from "../../core/recent.ts";
import type { Status, StatusConfiguration } from "../../core/status.ts";
import { mergeEvents } from "../../observe/recent/recent-log.ts";
import type { ReloadStates } from "../reload/reload-states.ts";
import type { Reloader } from "../reload/reloader.ts";
import type { Service } from "../service.ts";
import { mergeIssuers } from "../threads/merged-states.ts";
import { workersOf } from "../gate/from-configuration.ts";
import { Counted } from "./counted.ts";
import { explainRefusals } from "./explained-refusals.ts";
import { certificateIn, keysIn, reloadIn, routesIn, upstreamsIn } from "./sections.ts";

export interface StatusSources {
  readonly service: Service;
  readonly reloading: Reloader | undefined;
  readonly reloads: ReloadStates;
  /** The configuration that the process was started with. */
  readonly effective: Snapshot["effective"];
  readonly explain: (request: DryRunRequest) => Promise<Explanation>;
  /** Wall clock, in milliseconds since the epoch. */
  readonly startedAt: number;
}

/**
 * Collects the state of all parts of the process and all threads. Resolves within two seconds, even if some do not
 * answer.
 */
export async function collectStatus(sources: StatusSources): Promise<Status> {
  const { service, explain, startedAt } = sources;
  const { configuration, certificate, parts } = service;
  const { keys, assertionKeys, traffic, options } = parts;
  const now = options.clock.now();
  const [counted, threads, checks, targets] = await Promise.all([
    countedBy(service),
    threadsOf(service),
    service.probing.checks(),
    traffic.collect("targets"),
  ]);
  const upstreams = await upstreamsIn(configuration, counted, targets);
  const count = workersOf(configuration);
  return {
    version: options.version,
    node: process.versions.node,
    host: hostname(),
    pid: process.pid,
    now,
    startedAt,
    checks: [...checks],
    upstreams,
    state: service.state,
    ready: checks.every(({ passed }) => passed),
    workers: { count, alive: service.workersAlive() ?? count, answered: threads.answered },
    memory: {
      residentBytes: process.memoryUsage.rss(),
      bufferedBytes: counted.sum("buffered_bytes"),
    },
    traffic: {
      requests: counted.sum("http_requests_total"),
      inFlight: counted.sum("http_requests_in_flight"),
      webSockets: counted.sum("websocket_connections"),
      verifiedTokens: counted.sum("token_cache_entries"),
    },
    routes: routesIn(configuration, counted),
    certificate: certificateIn(certificate),
    keys: [...keysIn(keys.ring, "tokens", now), ...keysIn(assertionKeys.ring, "assertions", now)],
    issuers: threads.issuers.map(({ issuer, usable, keys: known, readAt, fetches }) => {
      return { issuer, usable, keys: known, readAt, stale: fetches?.stale === true };
    }),
    reload: reloadIn(sources.reloading?.lastReload(), sources.reloads),
    configuration: configurationIn(sources),
    minutes: threads.events.minutes,
    refusals: await explainRefusals(threads.events.refusals, configuration, explain),
  };
}

async function countedBy({ parts }: Service): Promise<Counted> {
  const { threads, observation } = parts;
  const { metrics } = observation;
  return new Counted(await (threads?.metricObjects(metrics) ?? metrics.json()));
}

interface Recent {
  readonly answered: number;
  readonly events: RecentEvents;
  readonly issuers: readonly IssuerState[];
}

/** Merges the recent events and the issuers of all threads that answer. */
async function threadsOf({ parts }: Service): Promise<Recent> {
  const own = parts.observation.recent.events();
  if (parts.threads === undefined) {
    return { answered: 1, events: mergeEvents([own]), issuers: parts.traffic.issuers() };
  }
  const all = await parts.threads.recent();
  const answers = all.filter((answer) => answer !== undefined);
  return {
    answered: answers.length,
    events: mergeEvents([own, ...answers.map(({ events }) => events)]),
    issuers: mergeIssuers(answers.map(({ issuers }) => issuers)),
  };
}

function configurationIn({ reloading, effective }: StatusSources): StatusConfiguration {
  if (reloading !== undefined) return reloading.inForce();
  const values = effective();
  return { ...inForce(values, values, []), needRestart: [] };
}
