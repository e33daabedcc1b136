import { accessSync, constants, statSync } from "node:fs";
import type { ConfigProblem } from "../core/config-problem.ts";
import type { YamlPath } from "../lib/positioned-yaml.ts";
import type { LoadedConfiguration } from "./load.ts";
import type { Configuration } from "./schema.ts";

interface NamedFile {
  readonly path: YamlPath;
  readonly file: string;
  readonly directory?: boolean;
}

/** Looks whether everything that the configuration names exists and can be read; gives what does not, with its place. */
export function checkNamedFiles(
  loaded: Pick<LoadedConfiguration, "configuration" | "problem">,
): ConfigProblem[] {
  return namedFiles(loaded.configuration).flatMap((named) => {
    const message = faultOf(named);
    return message === undefined ? [] : [loaded.problem({ path: named.path, message })];
  });
}

/** The files whose content is read with the configuration; users, trusted keys and signing keys are watched by their readers. */
export function filesReadAlong({ server, upstreams }: Configuration): string[] {
  const files = server.tls.mode === "files" ? [server.tls.certFile, server.tls.keyFile] : [];
  const authorities = server.tls.mode === "off" ? undefined : server.tls.clientCertificates?.caFile;
  const ofUpstreams = Object.values(upstreams).flatMap(({ tls }) => [
    tls?.caFile,
    tls?.certFile,
    tls?.keyFile,
  ]);
  return [...files, authorities, ...ofUpstreams].filter((file) => file !== undefined);
}

function namedFiles({ server, users, tokens, version, upstreams }: Configuration): NamedFile[] {
  const found: NamedFile[] = [];
  const add = (path: YamlPath, file: string | undefined): void => {
    if (file !== undefined) found.push({ path, file });
  };
  if (server.tls.mode === "files") {
    add(["server", "tls", "certFile"], server.tls.certFile);
    add(["server", "tls", "keyFile"], server.tls.keyFile);
  }
  if (server.tls.mode !== "off") {
    add(["server", "tls", "clientCertificates", "caFile"], server.tls.clientCertificates?.caFile);
  }
  for (const [index, { path }] of users.entries()) add(["users", index, "path"], path);
  if (tokens.keys !== undefined)
    found.push({ path: ["tokens", "keys"], file: tokens.keys, directory: true });
  for (const [index, { jwks }] of tokens.trusted.entries()) {
    if ("file" in jwks) add(["tokens", "trusted", index, "jwks", "file"], jwks.file);
  }
  if (version !== undefined && "file" in version) add(["version", "file"], version.file);
  for (const [name, { tls }] of Object.entries(upstreams)) {
    add(["upstreams", name, "tls", "caFile"], tls?.caFile);
    add(["upstreams", name, "tls", "certFile"], tls?.certFile);
    add(["upstreams", name, "tls", "keyFile"], tls?.keyFile);
  }
  return found;
}

function faultOf({ file, directory = false }: NamedFile): string | undefined {
  const kind = directory ? "directory" : "file";
  try {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined) return `names a ${kind} that does not exist`;
    if (directory && !stats.isDirectory()) return "does not name a directory";
    if (!directory && !stats.isFile()) return "does not name a regular file";
    accessSync(file, directory ? constants.R_OK | constants.X_OK : constants.R_OK);
    return undefined;
  } catch {
    return `names a ${kind} that cannot be read`;
  }
}
