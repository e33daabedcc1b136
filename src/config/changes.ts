import { pathName } from "./written.ts";
import type { Configuration } from "./configuration.ts";
import { isJsonObject } from "../lib/text/strict-json.ts";

/** Keys that are read only once, when the process starts. */
const READ_AT_START = [
  "server.listen",
  "server.workers",
  "server.proxyProtocol",
  "server.limits.headerBytes",
  "server.timeouts.header", // only for TLS handshakes
  "server.tls.mode",
  "server.tls.clientCertificates.mode",
  "admin.listen",
  "admin.allow",
  "tokens.revocation.journal",
  "shared",
  "log.level",
  "log.format",
  "log.access",
];

/** Returns the keys whose values differ, as deep as possible: `server.timeouts.header`, `routes[1].path`. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  return differences(before, after, []).map(pathName);
}

/** Returns those of the keys that take effect only after a restart. */
export function restartKeys(keys: readonly string[]): string[] {
  return keys.filter((key) =>
    READ_AT_START.some((start) => isWithin(key, start) || isWithin(start, key)),
  );
}

/**
 * The sections that keep their values until the restart if one of these keys has changed. An empty list: the new value
 * already applies, except to TLS handshakes.
 */
const WHOLE: Readonly<Record<string, readonly string[]>> = {
  "server.tls.mode": ["server.tls"],
  "server.tls.clientCertificates.mode": ["server.tls.clientCertificates"],
  "server.timeouts.header": [],
};

/** Returns the sections that keep their values from the start while these keys wait for a restart. */
export function restartSections(pending: readonly string[]): string[] {
  const sections = READ_AT_START.filter((start) =>
    pending.some((key) => isWithin(key, start) || isWithin(start, key)),
  );
  return sections.flatMap((section) => WHOLE[section] ?? [section]);
}

/** Reports whether a key is equal to another one or below it. Adding or removing a section changes all of its keys. */
function isWithin(key: string, whole: string): boolean {
  return key === whole || key.startsWith(`${whole}.`) || key.startsWith(`${whole}[`);
}

/**
 * Returns the configuration that a running process can put in force. Keys that need a restart keep the values in force,
 * and the files that they name are still followed, for example the certificate that is served until the restart.
 */
export function withoutRestart(written: Configuration, inForce: Configuration): Configuration {
  const { server, admin, tokens, log, shared } = inForce;
  const { shared: _atRestart, ...live } = written;
  const { listen, workers, proxyProtocol } = server;
  const { headerBytes } = server.limits;
  return {
    ...live,
    ...(shared !== undefined && { shared }),
    server: {
      ...written.server,
      listen,
      workers,
      proxyProtocol,
      tls: tlsWithoutRestart(written.server.tls, server.tls),
      limits: { ...written.server.limits, headerBytes },
    },
    tokens: { ...written.tokens, revocation: revocationWithoutRestart(written, tokens) },
    admin:
      written.admin === "off" || admin === "off"
        ? admin
        : { ...written.admin, listen: admin.listen, allow: admin.allow },
    log: { ...log, fields: written.log.fields },
  };
}

function revocationWithoutRestart(
  written: Configuration,
  { revocation }: Configuration["tokens"],
): Configuration["tokens"]["revocation"] {
  const { journal: _atRestart, ...rest } = written.tokens.revocation;
  const { journal } = revocation;
  return journal === undefined ? rest : { ...rest, journal };
}

type Tls = Configuration["server"]["tls"];

function tlsWithoutRestart(written: Tls, inForce: Tls): Tls {
  if (inForce.mode === "off" || written.mode === "off" || written.mode !== inForce.mode) {
    return inForce;
  }
  const { clientCertificates: current } = inForce;
  if (written.clientCertificates?.mode === current?.mode) return written;
  const { clientCertificates: _atRestart, ...rest } = written;
  return current === undefined ? rest : { ...rest, clientCertificates: current };
}

type Path = readonly (string | number)[];

function differences(before: unknown, after: unknown, path: Path): Path[] {
  if (Object.is(before, after)) return [];
  if (Array.isArray(before) && Array.isArray(after)) {
    const length = Math.max(before.length, after.length);
    return Array.from({ length }, (_, index) =>
      differences(before[index], after[index], [...path, index]),
    ).flat();
  }
  if (isJsonObject(before) && isJsonObject(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    return [...names].flatMap((name) => differences(before[name], after[name], [...path, name]));
  }
  return [path];
}
