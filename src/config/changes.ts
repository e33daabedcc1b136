import { isJsonObject } from "../lib/strict-json.ts";
import { pathName } from "./fault.ts";
import type { Configuration } from "./schema.ts";

/** What is read once, when the process starts. */
const AT_START = [
  "server.listen",
  "server.workers",
  "server.limits.headerBytes",
  "server.timeouts.header", // of handshakes alone, where there is TLS
  "server.tls.mode",
  "server.tls.clientCertificates.mode",
  "admin.listen",
  "admin.allow",
  "log",
];

/** The keys whose values differ, each as deep as possible: `server.timeouts.header`, `routes[1].path`. */
export function changedKeys(before: Configuration, after: Configuration): string[] {
  return differences(before, after, []).map(pathName);
}

/** Of these keys the ones that a running process cannot follow. */
export function startKeys(keys: readonly string[]): string[] {
  return keys.filter((key) =>
    AT_START.some((start) => isWithin(key, start) || isWithin(start, key)),
  );
}

/** Whether a key is another one or below it: a whole section that comes or goes takes its keys along. */
function isWithin(key: string, whole: string): boolean {
  return key === whole || key.startsWith(`${whole}.`) || key.startsWith(`${whole}[`);
}

/**
 * What of a configuration a running process can put in force: what needs a restart is as it is in force, and goes on being
 * followed as that (the files of a certificate that is served until the restart, say).
 */
export function withoutRestart(written: Configuration, inForce: Configuration): Configuration {
  const { server, admin, log } = inForce;
  const { listen, workers } = server;
  const { headerBytes } = server.limits;
  return {
    ...written,
    server: {
      ...written.server,
      ...{ listen, workers, tls: tlsWithoutRestart(written.server.tls, server.tls) },
      limits: { ...written.server.limits, headerBytes },
    },
    admin:
      written.admin === "off" || admin === "off"
        ? admin
        : { ...written.admin, listen: admin.listen, allow: admin.allow },
    log,
  };
}

type Tls = Configuration["server"]["tls"];

function tlsWithoutRestart(written: Tls, inForce: Tls): Tls {
  if (inForce.mode === "off" || written.mode === "off" || written.mode !== inForce.mode) {
    return inForce;
  }
  const { clientCertificates: asked } = inForce;
  if (written.clientCertificates?.mode === asked?.mode) return written;
  const { clientCertificates: _atRestart, ...rest } = written;
  return asked === undefined ? rest : { ...rest, clientCertificates: asked };
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
