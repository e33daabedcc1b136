import type { AdminPage } from "../core/admin-page.ts";
import type { DryRunRequest, Explanation } from "../core/explanation.ts";
import { createNetworks } from "../lib/http/networks.ts";
import { type Admin, startAdmin } from "../server/admin/admin-server.ts";
import { explainPage } from "../server/admin/explain-page.ts";
import { keySetPage } from "../server/endpoints/key-set-endpoint.ts";
import {
  configPage,
  drainPages,
  metricsPage,
  openApiPage,
  probePages,
  reloadPage,
  restrictedPage,
  statusPages,
  success,
} from "../server/admin/state-pages.ts";
import { revokedPage, revokePage } from "../server/admin/revoke-page.ts";
import { publishedKeys } from "../tokens/keys/key-ring.ts";
import { tokenHeadersOf } from "./gate/from-configuration.ts";
import { openApi } from "./api-description.ts";
import type { ReloadStates } from "./reload/reload-states.ts";
import type { Reloader } from "./reload/reloader.ts";
import type { Service } from "./service.ts";

/** The parts of the process that the pages show and control. */
export interface AdminSubject {
  readonly service: Service;
  readonly reloading: Reloader;
  readonly reloads: ReloadStates;
  /** Reports whether everything has started. */
  readonly started: () => boolean;
  readonly drain: () => void;
}

/** Opens the admin listener. Resolves with undefined if it is off. Rejects if the address is not available. */
export async function openAdmin(subject: AdminSubject): Promise<Admin | undefined> {
  const { service } = subject;
  const { admin } = service.configuration;
  if (admin === "off") return undefined;
  const { log, nextId, buffered } = service.parts.options;
  const pages = pagesAbout(subject);
  const opened = await startAdmin({
    ...admin.listen,
    allow: createNetworks(admin.allow),
    get pages() {
      return [...pages, ...service.probing.probePages()];
    },
    log,
    nextId,
    buffered,
  });
  log.info("admin listening", { address: opened.address, port: opened.port });
  return opened;
}

function pagesAbout(subject: AdminSubject): AdminPage[] {
  const { service, reloading, started, drain } = subject;
  const { probing, parts } = service;
  const { keys, traffic } = parts;
  const { clock, metrics, log } = parts.observation;
  const explain = async (request: DryRunRequest): Promise<Explanation> => {
    const { explain } = await import("./explanation/dry-run.ts");
    const { configuration } = service;
    return traffic.query((gate) => explain({ configuration, keys, clock }, gate, request));
  };
  const startedAt = clock.now();
  const begin = (by: string): void => {
    log.info("asked to drain", { by });
    drain();
  };
  return [
    ...statusPages(async () => {
      const { collectStatus } = await import("./status/collect-status.ts");
      return collectStatus({ ...subject, explain, startedAt });
    }),
    reloadPage((by) => reloading.now(by)),
    configPage(() => reloading.inForce()),
    openApiPage(() => openApi(service.configuration, parts.options.version)),
    metricsPage(() => service.metricsText(), metrics.contentType, metrics.openText),
    keySetPage(() => publishedKeys(parts)),
    explainPage(explain, () => tokenHeadersOf(service.configuration)),
    restrictedPage("GET", "/-/upstreams", async () => {
      const { targets } = await traffic.state();
      return success("The targets of the upstreams", { targets });
    }),
    revokedPage((caller) => parts.revoking.list.covering(caller)),
    revokePage((query, by) => service.revoke(query, by)),
    ...probePages({
      started,
      livenessFailures: () => service.failures(),
      checks: probing.checks,
      dependencies: async () => {
        const { dependenciesOf } = await import("./status/dependencies.ts");
        return dependenciesOf(service, subject.reloads);
      },
    }),
    ...drainPages({ state: () => service.state, begin }),
  ];
}
