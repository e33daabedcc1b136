import { pathWords } from "../../core/route/path-pattern.ts";
import { X509Certificate } from "node:crypto";
import type { Configuration } from "../../config/schema/configuration-schema.ts";
import type { TargetState } from "../../core/request/forwarder.ts";
import type {
  StatusCertificate,
  StatusKey,
  StatusReload,
  StatusRoute,
  StatusUpstream,
} from "../../core/status.ts";
import { accessPolicyWords } from "../../policy/access-policy.ts";
import { bySpecificity } from "../../policy/route-table.ts";
import { stateOf } from "../../tokens/keys/key-states.ts";
import type { KeyRing } from "../../tokens/keys/key-ring.ts";
import { reachState } from "../../upstream/pool/reachable.ts";
import { routesOf } from "../gate/from-configuration.ts";
import type { LastReload } from "../reload/reloader.ts";
import type { ReloadStates } from "../reload/reload-states.ts";
import type { Counted } from "./counted.ts";

/** The longer sections of the status. */

const REQUESTS = "http_requests_total";

export function routesIn(configuration: Configuration, counted: Counted): StatusRoute[] {
  return bySpecificity(routesOf(configuration)).map((route) => ({
    name: route.name,
    hosts: route.hosts,
    path: pathWords(route.path),
    methods: route.methods,
    access: accessPolicyWords(route),
    upstream: route.upstream,
    requests: counted.sum(REQUESTS, { route: route.name }),
    clientErrors: counted.sumOfClass(REQUESTS, { route: route.name }, 4),
    serverErrors: counted.sumOfClass(REQUESTS, { route: route.name }, 5),
  }));
}

/** Checks whether each target accepts a connection; with `resolve`, each address of a name. */
export function upstreamsIn(
  { upstreams }: Configuration,
  counted: Counted,
  known: readonly TargetState[],
): Promise<StatusUpstream[]> {
  return Promise.all(
    Object.entries(upstreams).map(async ([name, { targets, resolve }]) => ({
      name,
      inFlight: counted.sum("upstream_requests_in_flight", { upstream: name }),
      waiting: counted.sum("upstream_queue_length", { upstream: name }),
      targets: await statesOf(
        targets,
        known.filter(({ upstream }) => upstream === name),
        resolve !== undefined,
      ),
    })),
  );
}

/** @param known the targets that the threads report; empty while no name has an address, or no thread answers. */
async function statesOf(
  configured: readonly string[],
  known: readonly TargetState[],
  areNames: boolean,
): Promise<StatusUpstream["targets"]> {
  if (known.length === 0 && areNames) {
    return configured.map((address) => ({ address, reachable: false, state: "no address" }));
  }
  const all =
    known.length > 0
      ? known
      : configured.map((target) => ({ target, state: "available" as const }));
  return Promise.all(
    all.map(async ({ target: address, state }) => {
      const reached = await reachState(address);
      const reachable = reached === "ok";
      return { address, reachable, state: reachable && state !== "available" ? state : reached };
    }),
  );
}

export function certificateIn(text: string | undefined): StatusCertificate | undefined {
  if (text === undefined) return undefined;
  const { subject, issuer, subjectAltName, validToDate } = new X509Certificate(text);
  const line = (name: string): string => name.replaceAll("\n", ", ");
  return {
    subject: line(subject),
    issuer: line(issuer),
    names: subjectAltName ?? "",
    notAfter: validToDate.getTime(),
  };
}

/** Returns the keys without their key material. */
export function keysIn(ring: KeyRing, signs: StatusKey["signs"], now: number): StatusKey[] {
  return ring.map((key) => ({
    signs,
    kid: key.kid,
    algorithm: key.algorithm,
    state: stateOf(key, ring, now),
    file: key.file,
    madeAt: key.madeAt,
    verifiesUntil: key.verifiesUntil === Infinity ? undefined : key.verifiesUntil,
  }));
}

/** Returns the last reload of the configuration or of a file that is read separately, whichever was later. */
export function reloadIn(
  last: LastReload | undefined,
  { failure, repairedAt = -Infinity }: ReloadStates,
): StatusReload | undefined {
  const nothing = { changes: [], files: [], problems: [] };
  if (failure !== undefined) return { ...nothing, successful: false, ...failure };
  if (last !== undefined && last.at >= repairedAt) return { ...nothing, successful: true, ...last };
  if (repairedAt === -Infinity) return undefined;
  return { ...nothing, successful: true, at: repairedAt };
}
