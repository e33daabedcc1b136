import type { Configuration } from "../config/configuration.ts";
import type { AdminPage } from "../core/admin-page.ts";
import type { Change } from "../core/change.ts";
import { type IssuerState, SILENT_MS } from "../core/status.ts";
import type { TargetState } from "../upstream/pool/target.ts";
import type { Clock } from "../lib/clock.ts";
import type { ReadinessCheck } from "../server/admin/state-pages.ts";
import {
  createReachabilityCheck,
  probePage,
  type Reachability,
} from "../upstream/pool/health-check.ts";
import type { GateOptions } from "./gate/gate-options.ts";
import type { OpenUserStore } from "../credentials/stores/user-store.ts";
import { sharedFor, SingleFlight } from "../lib/async/single-flight.ts";
import { withTimeout } from "../lib/async/with-timeout.ts";
import { LATE } from "../lib/text/error-code.ts";

/** The timeout of a check, in milliseconds. By default, the kubelet waits for a second. */
const EXAMINE_MS = 800;
/** How long a result is cached, in milliseconds: anyone who can reach the port may request it at any rate. */
const CACHE_MS = 1_000;

/** A user store and its name in metrics. */
interface NamedStore {
  readonly name: string;
  readonly store: Pick<OpenUserStore, "examine">;
}

/**
 * Creates a function that asks the user stores on other machines whether they are available. It resolves within a second,
 * whatever they do, and never rejects.
 */
function createStoreCheck(
  stores: () => readonly NamedStore[],
  clock: Clock,
): () => Promise<readonly StoreState[]> {
  const check = sharedFor<readonly StoreState[]>(CACHE_MS, clock, () =>
    Promise.all(
      stores().flatMap(
        ({ name, store }) =>
          store.examine?.(EXAMINE_MS).then((problem) => ({ name, problem })) ?? [],
      ),
    ),
  );
  return () => withTimeout(check(), 1_000, TIMED_OUT);
}

const TIMED_OUT: readonly StoreState[] = [{ name: "users", problem: LATE }];

interface StoreState {
  readonly name: string;
  readonly problem: string | undefined;
}

function checkOf(states: readonly StoreState[]): ReadinessCheck[] {
  if (states.length === 0) return [];
  const passed = states.every(({ problem }) => problem === undefined);
  const state = states.map(({ name, problem }) => `${name} ${problem ?? "ok"}`).join(", ");
  return [{ name: "users", passed, state }];
}

/** The state of the process that the checks read. */
interface ProbingSources {
  readonly draining: () => boolean;
  /** All trusted issuers. */
  readonly issuers: () => readonly IssuerState[];
  /** Reports whether Sallyport has an own key that verifies tokens. */
  readonly ownKeys: () => boolean;
  /** The number of threads that accept clients; undefined if only the main thread does. */
  readonly workersAlive: () => number | undefined;
  /** The user stores in force. */
  readonly stores: () => readonly NamedStore[];
  /** The state of each target. */
  readonly targets: () => Promise<readonly TargetState[]>;
  readonly clock: Clock;
}

type Probed = Pick<GateOptions, "configuration" | "files">;

/** Health checks that depend on the configuration in force. */
export type Probing = ReturnType<typeof createProbing>;

export function createProbing(
  probed: Probed,
  { draining, issuers, ownKeys, workersAlive, stores, targets, clock }: ProbingSources,
) {
  const askable = createStoreCheck(stores, clock);
  const flights = new SingleFlight<readonly TargetState[]>();
  let current = wantedBy(probed, clock);
  return {
    /** The readiness checks. Backends are probed only on request. */
    async checks(): Promise<readonly ReadinessCheck[]> {
      const leaves = draining();
      const checks = [{ name: "draining", passed: !leaves, state: leaves ? "yes" : "no" }];
      const alive = workersAlive();
      if (alive !== undefined) {
        checks.push({ name: "workers", passed: leaves || alive > 0, state: `${alive} alive` });
      }
      const { reachability, ready, ownTokens, several } = current;
      const [found, users, states] = await Promise.all([
        reachability?.(),
        ready?.users === true ? askable() : undefined,
        // A thread that hangs must not delay the answer: the others serve.
        withTimeout(flights.run("targets", targets), EXAMINE_MS, []),
      ]);
      const isWaiting = states.some(({ oldestMs }) => oldestMs >= SILENT_MS);
      const choice = several || isWaiting ? [targetsCheck(states)] : [];
      const trusted = issuers();
      return [
        ...checks,
        ...(trusted.length === 0 ? [] : [issuersCheck(trusted, ownTokens && ownKeys())]),
        ...(found === undefined ? [] : [upstreamsCheck(found, ready?.upstreams)]),
        ...(users === undefined ? [] : checkOf(users)),
        ...choice,
      ];
    },
    /** The user stores on other machines, and what is wrong with each; undefined for nothing. */
    stores: askable,
    /** Returns the pages of the admin listener that are forwarded to backends. */
    probePages: () => current.pages,
    /** Prepares another configuration. */
    prepare(changed: Probed): Change {
      const next = wantedBy(changed, clock);
      return {
        async commit() {
          current = next;
        },
        rollback: () => undefined,
      };
    },
  };
}

type Ready = Exclude<Configuration["admin"], "off">["ready"];

/** Returns what one configuration wants to be checked. */
function wantedBy(probed: Probed, clock: Clock) {
  const { configuration, files } = probed;
  const { upstreams } = files;
  const { admin, users, tokens } = configuration;
  /** Undefined without an admin listener. */
  const ready = admin === "off" ? undefined : admin.ready;
  return {
    ready,
    /** Whether own tokens can exist: there are users, or key files with which other replicas may sign. */
    ownTokens: users.length > 0 || tokens.keys !== undefined,
    /** Undefined if no upstream is to be checked. */
    reachability:
      ready === undefined || ready.upstreams === "none"
        ? undefined
        : createReachabilityCheck(upstreams, clock),
    /** Whether an upstream has several targets to choose from. */
    several: upstreams.some(({ targets, resolve }) => targets.length > 1 || resolve !== undefined),
    pages: probePagesOf(probed),
  };
}

/** A replica that cannot accept any token is not ready. One usable issuer is enough. */
function issuersCheck(issuers: readonly IssuerState[], own: boolean): ReadinessCheck {
  return {
    name: "issuers",
    passed: own || issuers.some(({ usable }) => usable),
    state: issuers.map((each) => `${each.issuer} ${keysOf(each)}`).join(", "),
  };
}

function keysOf({ usable, fetches }: IssuerState): string {
  if (!usable) return "no keys";
  return fetches?.stale === true ? "old keys" : "ok";
}

/** Maximum number of targets listed for each upstream. */
const MOST_NAMED = 8;

/** Lists the targets that get no requests, or do not answer them, by upstream. They do not affect readiness. */
function targetsCheck(states: readonly TargetState[]): ReadinessCheck {
  const names = [...new Set(states.map(({ upstream }) => upstream))];
  const state = names.map((name) => {
    const all = states.filter(({ upstream }) => upstream === name);
    const out = all.filter(({ state: each }) => each !== "available");
    const named = out.slice(0, MOST_NAMED).map(({ target, state: each }) => `${target} ${each}`);
    const why = out.length === 0 ? "" : ` (${named.join("; ")})`;
    const silent = all
      .filter(({ oldestMs }) => oldestMs >= SILENT_MS)
      .slice(0, MOST_NAMED)
      .map(
        ({ target, oldestMs }) =>
          `; ${target} has not answered for ${Math.floor(oldestMs / 1_000)}s`,
      );
    return `${name} ${all.length - out.length} of ${all.length}${why}${silent.join("")}`;
  });
  return { name: "targets", passed: true, state: state.join(", ") || "not known" };
}

function upstreamsCheck(
  found: Reachability,
  wanted: Ready["upstreams"] | undefined,
): ReadinessCheck {
  const states = [...found];
  const reachable = states.filter(([, state]) => state === "ok").length;
  return {
    name: "upstreams",
    passed: wanted === "any" ? reachable > 0 : reachable === states.length,
    state: states.map((each) => each.join(" ")).join(", "),
  };
}

function probePagesOf({ configuration, files }: Probed): AdminPage[] {
  const { admin } = configuration;
  if (admin === "off") return [];
  return admin.probes.flatMap((probe) => {
    const probed = files.upstreams.find(({ name }) => name === probe.upstream);
    return probed === undefined ? [] : [probePage(probe, probed)];
  });
}
