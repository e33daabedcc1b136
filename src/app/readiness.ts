import type { Configuration } from "../config/schema.ts";
import type { AdminPage } from "../core/admin-page.ts";
import type { Change } from "../core/change.ts";
import type { Clock } from "../lib/clock.ts";
import type { ReadinessCheck } from "../server/probe-pages.ts";
import { probePage } from "../upstream/probe.ts";
import { type Reachability, reachabilityOf } from "../upstream/reachable.ts";
import { upstreamsOf } from "./from-configuration.ts";

/** What probes depend on besides this process, from the configuration that is in force. */
export interface Probing {
  /** What readiness depends on. Backends are looked at when somebody asks, and only then. */
  readonly checks: () => Promise<readonly ReadinessCheck[]>;
  /** The pages of the admin listener that backends answer. */
  passages(): readonly AdminPage[];
  /** Prepares another configuration. @throws the system's error for a file that cannot be read. */
  prepare(configuration: Configuration): Change;
}

export function createProbing(
  configuration: Configuration,
  draining: () => boolean,
  clock: Clock,
): Probing {
  let wanted = wantedOf(configuration);
  let reachability = reachabilityFor(configuration, clock);
  let passages = passagesOf(configuration);
  return {
    async checks() {
      const leaves = draining();
      const check = { name: "draining", passed: !leaves, state: leaves ? "yes" : "no" };
      const found = await reachability?.();
      return found === undefined ? [check] : [check, upstreamsCheck(found, wanted)];
    },
    passages: () => passages,
    prepare(next) {
      const [lookup, pages] = [reachabilityFor(next, clock), passagesOf(next)];
      return {
        async commit() {
          wanted = wantedOf(next);
          reachability = lookup;
          passages = pages;
        },
        drop: () => undefined,
      };
    },
  };
}

type Wanted = "none" | "any" | "all";

function wantedOf({ admin }: Configuration): Wanted {
  return admin === "off" ? "none" : admin.ready.upstreams;
}

function reachabilityFor(
  configuration: Configuration,
  clock: Clock,
): (() => Promise<Reachability>) | undefined {
  if (wantedOf(configuration) === "none") return undefined;
  return reachabilityOf(upstreamsOf(configuration), clock);
}

function upstreamsCheck(found: Reachability, wanted: Wanted): ReadinessCheck {
  const states = [...found];
  const reachable = states.filter(([, state]) => state === "ok").length;
  return {
    name: "upstreams",
    passed: wanted === "any" ? reachable > 0 : reachable === states.length,
    state: states.map((each) => each.join(" ")).join(", "),
  };
}

function passagesOf(configuration: Configuration): AdminPage[] {
  const { admin } = configuration;
  if (admin === "off" || admin.probes.length === 0) return [];
  const upstreams = upstreamsOf(configuration);
  return admin.probes.flatMap(({ path, upstream, target = path }) => {
    const asked = upstreams.find(({ name }) => name === upstream);
    return asked === undefined ? [] : [probePage({ path, target }, asked)];
  });
}
