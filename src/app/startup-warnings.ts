import { isIP } from "node:net";
import { readFileSync } from "node:fs";
import type { Configuration } from "../config/configuration.ts";
import { namedFiles, type Snapshot } from "../config/snapshot.ts";
import type { Log } from "../core/log.ts";
import type { Route } from "../core/route/route.ts";
import type { ClearText } from "../credentials/stores/user-store.ts";
import { keyStoreKindOf } from "../tokens/api-keys/key-store-kinds.ts";
import { inspectStore, storeKindOf } from "../credentials/stores/store-kinds.ts";
import type { FileContent } from "../lib/files/regular-file.ts";
import { exposures } from "../lib/process-hardening.ts";
import { isExposed, isOpenToAll, isReplaceable } from "../lib/files/private-file.ts";
import { issuerWarning, routeWarnings } from "../policy/route-warnings.ts";
import { QUESTION_FIELDS } from "../server/decisions/decisions.ts";
import { authorityWarnings, certificateWarnings } from "../server/tls/certificate.ts";
import {
  acceptsProofs,
  assertsWithOwnKeys,
  identityHeadersOf,
  routesOf,
  workersOf,
} from "./gate/from-configuration.ts";
import { ownHostsOf } from "./gate/own-addresses.ts";
import { certificateFilesOf, usersFilesIn } from "./from-files.ts";
import { exposedOwnKeys } from "./keys/inspected-keys.ts";

/** A condition that does not prevent the start but needs attention. */
export interface StartupWarning {
  readonly about: "files" | "configuration" | "routes";
  /** The file concerned. */
  readonly file?: string;
  readonly urgent: boolean;
  readonly message: string;
  /** What the operator can do about it. */
  readonly hint?: string;
  /** Whether another part of a running Sallyport detects and logs it. */
  readonly loggedElsewhere?: true;
}

function warning(
  about: StartupWarning["about"],
  message: string,
  more: Partial<StartupWarning> = {},
): StartupWarning {
  return { about, urgent: false, message, ...more };
}

/** A warning about the configuration. */
function configurationWarning(message: string, hint: string): StartupWarning {
  return warning("configuration", message, { hint });
}

function fileWarning(
  file: string,
  message: string,
  more: Partial<StartupWarning> = {},
): StartupWarning {
  return { about: "files", file, urgent: false, message, ...more };
}

/**
 * Returns all warnings of `check`, `doctor` and `serve`: about certificates, files and directories that other users can
 * read or change, connections in clear text, a configuration that gives nobody a token, and gaps between routes.
 *
 * @param nowMs wall clock.
 * @throws ConfigError for a file that `inspect` also refuses.
 */
export async function startupWarnings(
  snapshot: Snapshot,
  nowMs: number,
): Promise<StartupWarning[]> {
  const { written } = snapshot;
  return [
    ...certificateWarningsOf(snapshot, nowMs),
    ...secretFileWarnings(snapshot),
    ...(await callerWarnings(snapshot)),
    ...identityWarnings(written),
    ...proofWarnings(written),
    ...clearTextWarnings(written),
    ...weightWarnings(written),
    ...gapWarnings(routesOf(written)),
    ...decisionWarnings(written),
  ];
}

function certificateWarningsOf({ written, files }: Snapshot, nowMs: number): StartupWarning[] {
  const { tls } = written.server;
  const used = Object.values(written.upstreams).flatMap((upstream) => upstream.tls ?? []);
  const own = [...certificateFilesOf(tls), ...used].map(({ certFile }) => certFile);
  const clients = tls.mode === "off" ? undefined : tls.clientCertificates;
  const others = [clients, ...used].map((each) => each?.caFile);
  const about = (file: string | undefined, judge: typeof certificateWarnings): StartupWarning[] =>
    file === undefined
      ? []
      : judge(files.text(file), nowMs).map((found) => ({ about: "files", file, ...found }));
  return [
    ...[...new Set(own)].flatMap((file) => about(file, certificateWarnings)),
    ...[...new Set(others)].flatMap((file) => about(file, authorityWarnings)),
  ];
}

/** Returns warnings about private keys and password hashes that other users can read or replace. */
function secretFileWarnings({ written, files }: Snapshot): StartupWarning[] {
  const secrets = namedFiles(written).filter(({ use }) => use.secret);
  const exposed = exposedOwnKeys(written, files);
  return [
    ...[...new Set(secrets.map(({ path }) => path))].flatMap((path) =>
      fileWarnings(files.content(path)),
    ),
    ...exposed.map((file) => fileWarning(file, READABLE, { loggedElsewhere: true })),
  ];
}

const READABLE = "can be read by other users";

function fileWarnings({ path: file, stats }: FileContent): StartupWarning[] {
  const found: StartupWarning[] = [];
  if (isOpenToAll(file, stats)) {
    found.push(fileWarning(file, "can be changed by every user", { urgent: true }));
  } else if (isExposed(stats)) found.push(fileWarning(file, READABLE));
  if (isReplaceable(file)) {
    const message = "can be replaced: every user can write to its directory";
    found.push(fileWarning(file, message));
  }
  return found;
}

/** Returns warnings about who can get a token, about the keys that sign, and about how long tokens and logouts last. */
async function callerWarnings({ written, files }: Snapshot): Promise<StartupWarning[]> {
  const { users, tokens, browser, apiKeys } = written;
  const found: StartupWarning[] = [];
  const add = (message: string, more: Partial<StartupWarning>): void =>
    void found.push(warning("configuration", message, more));
  const providers = browser?.providers ?? [];
  const issued = users.length + tokens.trusted.length + providers.length;
  if (issued === 0 && apiKeys.length === 0) {
    const message = "there are no users and no trusted issuers: nobody gets a token";
    const hint = "name a users file, or an issuer in tokens.trusted";
    add(message, { hint, loggedElsewhere: true });
  }
  for (const store of users) {
    const count = await inspectStore(store, usersFilesIn(files));
    const file = "path" in store ? { file: store.path } : {};
    if (count === 0) add("contains no users: nobody can log in", file);
  }
  if (tokens.keys === undefined) {
    const message = "each process generates its own signing key, and its tokens end with it";
    add(message, { hint: "set tokens.keys, see sallyport keys --help", loggedElsewhere: true });
  }
  if (tokens.assertion !== undefined && !assertsWithOwnKeys(tokens)) {
    const message = "the token keys also sign assertions";
    add(message, {
      hint: "set tokens.assertion.keys; sallyport keys generate --assertion makes the first",
    });
  }
  const { logout, journal } = tokens.revocation;
  if (logout && journal === undefined && tokens.keys !== undefined) {
    const message = "a restart forgets who has logged out: their tokens are accepted again";
    add(message, { hint: "set tokens.revocation.journal" });
  }
  return found;
}

/** Keys of routes that mean nothing to a request which another proxy forwards. */
const OF_FORWARDED = [
  "concurrency",
  "timeouts",
  "retry",
  "mirror",
  "rewrite",
  "responseHeaders",
  // Over gRPC, these are among the changes that the proxy is told.
  "requestHeaders",
  "forwardAuthorization",
] as const;

/** Returns warnings about keys of routes that hold only for requests that pass through Sallyport. */
function decisionWarnings({ decisions, routes }: Configuration): StartupWarning[] {
  if (decisions === undefined) return [];
  const keys = decisions.http ? OF_FORWARDED : OF_FORWARDED.slice(0, -2);
  return routes.flatMap((route) => {
    const { name, auth, headers = {} } = route;
    const found: StartupWarning[] = [];
    if (auth === "certificate") {
      const message = `the route ${name} has auth: certificate, and refuses all requests that another proxy asks about`;
      const hint = "the client's connection ends there: let that proxy check its certificate";
      found.push(configurationWarning(message, hint));
    }
    const idle = keys.filter((key) => key in route && route[key] !== "strip");
    if (idle.length > 0) {
      const message = `the route ${name} has ${idle.join(", ")}, which does not hold for requests that another proxy forwards`;
      found.push(configurationWarning(message, "set it there: Sallyport sees only the question"));
    }
    for (const field of Object.keys(headers)) {
      if (!QUESTION_FIELDS.includes(field.toLowerCase())) continue;
      const message = `the route ${name} compares ${field}, which no request has that another proxy asks about`;
      found.push(configurationWarning(message, "it names a part of the question there"));
    }
    return found;
  });
}

function identityWarnings(configuration: Configuration): StartupWarning[] {
  const { tokens, users, browser } = configuration;
  // Without users, nobody gets a token here.
  const own = users.length === 0 ? [] : [tokens.issuer];
  const issuers = [...own, ...tokens.trusted.map(({ issuer }) => issuer)];
  const found = issuerWarning(issuers, identityHeadersOf(configuration).issuer);
  const unclear = found === undefined ? [] : [configurationWarning(found.message, found.hint)];
  const named = [...issuers, ...(browser?.providers ?? []).map(({ issuer }) => issuer)];
  const alike = named.find((issuer) => named.includes(`${issuer}/`));
  if (alike === undefined) return unclear;
  const message = `${alike} and ${alike}/ are two issuers`;
  const hint = "issuers are compared letter by letter: write the one of the discovery document";
  return [...unclear, configurationWarning(message, hint)];
}

/** Returns the warning that proofs count for other servers, too. */
function proofWarnings(configuration: Configuration): StartupWarning[] {
  if (!acceptsProofs(configuration) || ownHostsOf(configuration) !== undefined) return [];
  const message = "no host is named: a proof of a client for another server counts here, too";
  return [configurationWarning(message, "set hosts of the routes")];
}

function gapWarnings(routes: readonly Route[]): StartupWarning[] {
  return [
    ...routeWarnings(routes).map(({ route, message, hint }) =>
      warning("routes", `${route}: ${message}`, { hint }),
    ),
    ...routes.filter(({ mode }) => mode === "monitor").map(monitorWarning),
  ];
}

function monitorWarning({ name, path }: Route): StartupWarning {
  const isEverywhere = "prefix" in path && path.prefix === "/";
  const where = isEverywhere ? ", on all paths that no other route matches" : "";
  const hint = isEverywhere
    ? "until then, cover paths that must stay closed, such as the backend's own /metrics or /admin, by routes without mode: monitor"
    : "set mode: enforce";
  const message = `${name}: monitor mode refuses nothing${where}`;
  return warning("routes", message, { hint, loggedElsewhere: true });
}

/** Returns warnings about weights that change nothing. */
function weightWarnings({ upstreams }: Configuration): StartupWarning[] {
  const idle = Object.entries(upstreams).filter(
    ([, { balance, weights }]) => balance === "first" && weights !== undefined,
  );
  const message = "weights have no effect with balance: first";
  return idle.map(([name]) => warning("configuration", `upstreams.${name}: ${message}`));
}

/** Returns warnings about connections that send passwords in clear text to other machines. */
function clearTextWarnings({ users, apiKeys, shared }: Configuration): StartupWarning[] {
  const clearIn = (
    section: string,
    kind: string,
    clear: ClearText | undefined,
  ): StartupWarning[] => {
    if (clear === undefined || isHere(clear.url)) return [];
    const message = `${section}: the connection to the ${kind} store is clear text: eavesdroppers can read passwords or hashes`;
    return [configurationWarning(message, clear.hint)];
  };
  const found = [
    ...users.flatMap((each) => clearIn("users", each.kind, storeKindOf(each).clearText?.(each))),
    ...apiKeys.flatMap((each) =>
      clearIn("apiKeys", each.kind, keyStoreKindOf(each).clearText?.(each)),
    ),
  ];
  if (shared === undefined || !shared.url.startsWith("redis:")) return found;
  if ([shared.url, ...shared.nodes.map((node) => `redis://${node}`)].every(isHere)) return found;
  const message = "shared: the connection is clear text: eavesdroppers can read its password";
  return [...found, configurationWarning(message, "use rediss://")];
}

function isHere(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

/**
 * Returns a function that logs the warnings at the start and after each reload. What was said and still holds is not
 * said again.
 */
export function startupWarningLog({ warn, error }: Log) {
  let said = new Set<string>();
  return (configuration: Configuration, warnings: readonly StartupWarning[]): void => {
    const holds = new Set<string>();
    const once =
      (say: Log["warn"]): Log["warn"] =>
      (message, fields) => {
        const line = JSON.stringify([message, fields]);
        if (!said.has(line) && !holds.has(line)) say(message, fields);
        holds.add(line);
      };
    logStartupWarnings(configuration, warnings, { warn: once(warn), error: once(error) });
    said = holds;
  };
}

/** Logs the warnings that are not logged elsewhere, and those about the process itself. */
function logStartupWarnings(
  configuration: Configuration,
  warnings: readonly StartupWarning[],
  log: Pick<Log, "warn" | "error">,
): void {
  for (const { file, urgent, message, hint, loggedElsewhere } of warnings) {
    if (loggedElsewhere) continue;
    if (file === undefined)
      log.warn("the configuration needs attention", { concern: message, hint });
    else log[urgent ? "error" : "warn"](`a file needs attention: ${message}`, { file });
  }
  const { users, browser } = configuration;
  if (users.length === 0 && (browser?.providers ?? []).length === 0)
    log.warn("there are no users: nobody can log in");
  const files = fewOpenFiles(configuration);
  if (files !== undefined)
    log.warn("the open-file limit is too low for server.limits.connections", files);
  const watched = configuration.routes.filter(({ mode }) => mode === "monitor");
  if (watched.length > 0) {
    const routes = watched.map(({ name }) => name);
    log.warn("NOBODY IS REFUSED on routes with mode: monitor", { routes });
  }
  const open = exposures();
  if (open.length > 0)
    log.warn("the memory of this process can be read from outside", { by: open });
}

/** File descriptors for the log, the admin listener, key sets, and Node itself, which has about 40 open when idle. */
const OTHER_FILES = 200;

/**
 * Checks whether `server.limits.connections` can be reached: each connection needs a file descriptor, and a second one
 * while it uses a backend, as far as `upstreams.*.connections` allow. At the limit of the process, no connection can be
 * opened any more: neither of clients, nor to backends, nor to the admin listener.
 *
 * @returns undefined if there are enough, or if the limit is unknown.
 */
function fewOpenFiles(
  configuration: Configuration,
): { readonly allowed: number; readonly needed: number } | undefined {
  const allowed = openFileLimit();
  const { connections } = configuration.server.limits;
  const toBackends = Object.values(configuration.upstreams)
    // With `resolve`, the number of targets is not known.
    .map((each) => (each.resolve === undefined ? each.targets.length * each.connections : Infinity))
    .reduce((sum, each) => sum + each, 0);
  const needed =
    connections + Math.min(connections, toBackends * workersOf(configuration)) + OTHER_FILES;
  return allowed >= needed ? undefined : { allowed, needed };
}

/**
 * Returns how many files, including sockets, this process may have open: the soft limit, which Node raises to the
 * hard limit at start. Infinity if there is no limit, or no /proc.
 */
function openFileLimit(): number {
  try {
    const limits = readFileSync("/proc/self/limits", "latin1");
    return Number(/^Max open files +(\d+) /m.exec(limits)?.[1] ?? Infinity);
  } catch {
    return Infinity;
  }
}
