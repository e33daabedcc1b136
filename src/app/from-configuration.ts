import { availableParallelism } from "node:os";
import type { Configuration } from "../config/schema.ts";
import { ConfigError } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import type { RateLimit } from "../core/rate-limit.ts";
import type { Route } from "../core/route.ts";
import { systemClock } from "../lib/clock.ts";
import { readRegularFileSync } from "../lib/regular-file.ts";
import { readAuthorities, readCertificate } from "../server/certificate.ts";
import { developmentCertificate } from "../server/development-certificate.ts";
import type { ListenOptions } from "../server/listen.ts";
import { tryContext } from "../server/tls-listener.ts";
import { createRateLimit } from "../state/rate-limit.ts";
import { type IdentityHeaderNames, IDENTITY_PRESETS } from "../upstream/identity-headers.ts";
import type { UpstreamOptions } from "../upstream/upstreams.ts";

/** What each feature is given, from what the configuration says. */

export type ServerTls = ListenOptions["tls"];

/** @throws ConfigError when the certificate cannot be read or the key is not its own. */
export async function tlsOf({ server }: Configuration, log: Log): Promise<ServerTls> {
  switch (server.tls.mode) {
    case "off":
      return undefined;
    case "selfSigned": {
      log.warn("the certificate signs itself: for development only");
      const pair = await developmentCertificate(["localhost", "127.0.0.1", "::1"]);
      return { ...pair, minVersion: "TLSv1.2", clientCertificates: askedOf(server.tls) };
    }
    case "files": {
      const { certFile, keyFile, minVersion } = server.tls;
      const pair = readCertificate(certFile, keyFile);
      const tls = { ...pair, minVersion, clientCertificates: askedOf(server.tls) };
      return taken(tls, certFile);
    }
  }
}

/** What OpenSSL says of all of it together. @throws ConfigError with its code alone. */
function taken(tls: NonNullable<ServerTls>, file: string): ServerTls {
  try {
    tryContext(tls);
    return tls;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unreadable";
    throw new ConfigError([{ file, message: `cannot be served (${code})` }]);
  }
}

type AskingTls = Exclude<Configuration["server"]["tls"], { readonly mode: "off" }>;

/** What clients are asked for. @throws ConfigError when the authorities cannot be read. */
export function askedOf({
  clientCertificates,
}: AskingTls): NonNullable<ServerTls>["clientCertificates"] {
  if (clientCertificates === undefined) return undefined;
  const { mode, caFile } = clientCertificates;
  return { authorities: readAuthorities(caFile), required: mode === "required" };
}

/** The names that label series. */
export function seriesOf({ routes, upstreams }: Configuration): {
  routes: string[];
  upstreams: string[];
} {
  return { routes: routes.map(({ name }) => name), upstreams: Object.keys(upstreams) };
}

/**
 * How long a connection may carry a request without a byte in either direction: as long as the slowest of those that may
 * be silent is allowed to be, and some more, so that whoever is to blame is told first.
 */
export function stallOf({ server, upstreams }: Configuration): number {
  const backends = Object.values(upstreams).flatMap(({ queue, timeouts }) => [
    queue.timeout + timeouts.connect + timeouts.response,
    timeouts.idle,
  ]);
  return Math.min(Math.max(server.timeouts.request, ...backends) + STALL_MARGIN_MS, LONGEST_MS);
}

const STALL_MARGIN_MS = 2_000;
/** What a timer of Node's can hold. */
const LONGEST_MS = 2 ** 31 - 1;

/** How many threads accept connections. */
export function workersOf({ server }: Configuration): number {
  return server.workers === 0 ? availableParallelism() : server.workers;
}

/** The `realm` of challenges (RFC 9110 §11.5): quoted, so without quotes of its own. */
export function realmOf({ tokens }: Configuration): string {
  return tokens.issuer.replaceAll(/[^ !#-[\]-~]/g, "");
}

export function identityHeadersOf({ identity }: Configuration): IdentityHeaderNames {
  const { headers } = identity;
  return typeof headers === "string" ? IDENTITY_PRESETS[headers] : headers;
}

/** Makes what counts the requests of a route, or takes what counts them already. */
type RateLimitSource = (route: string, settings: Omit<RateLimit, "take">) => RateLimit;

const newRateLimit: RateLimitSource = (_route, settings) => createRateLimit(settings, systemClock);

export function routesOf(
  { routes }: Configuration,
  rateLimitFor: RateLimitSource = newRateLimit,
): Route[] {
  return routes.map((row) => {
    const { name, hosts, methods, auth, upstream, forwardAuthorization, rewrite } = row;
    const bodyBytes = row.limits?.bodyBytes;
    return {
      name,
      auth,
      mode: row.mode,
      upstream,
      forwardAuthorization,
      path: "exact" in row ? { exact: row.exact } : { prefix: row.path },
      ...(hosts === undefined ? {} : { hosts }),
      ...(methods === undefined ? {} : { methods }),
      ...(row.require === undefined ? {} : { groups: row.require.groups }),
      ...(rewrite === undefined ? {} : { rewrite }),
      ...(bodyBytes === undefined ? {} : { bodyBytes }),
      ...(row.rateLimit === undefined
        ? {}
        : { rateLimit: rateLimitFor(name, rateLimitOf(row, row.rateLimit)) }),
    };
  });
}

function rateLimitOf(
  { auth }: Pick<Route, "auth">,
  written: NonNullable<Configuration["routes"][number]["rateLimit"]>,
): Omit<RateLimit, "take"> {
  const { requests, within, burst = requests } = written;
  const { by = auth === "none" ? "address" : "subject" } = written;
  return { by, requests, withinMs: within, burst };
}

/** Reads the PEM files of the upstreams; throws the system's error for one that cannot be read. */
export function upstreamsOf({ upstreams }: Configuration): UpstreamOptions[] {
  return Object.entries(upstreams).map(([name, { tls, ...rest }]) => ({
    name,
    ...rest,
    tls: tls && {
      ca: contentOf(tls.caFile),
      cert: contentOf(tls.certFile),
      key: contentOf(tls.keyFile),
      serverName: tls.serverName,
    },
  }));
}

function contentOf(file: string | undefined): string | undefined {
  return file === undefined ? undefined : readRegularFileSync(file).toString("utf8");
}
