import { statSync } from "node:fs";
import type { Configuration } from "../config/schema.ts";
import { openFilesAllowed } from "../lib/open-files.ts";
import { isExposed } from "../lib/private-file.ts";
import { readRegularFileSync } from "../lib/regular-file.ts";
import { certificateConcerns } from "../server/tls-certificate-concerns.ts";
import { workersOf } from "./from-configuration.ts";

/** Something about a file that does not keep Sallyport from starting, and that somebody should see to. */
export interface Concern {
  readonly file: string;
  readonly urgent: boolean;
  readonly message: string;
}

/**
 * Looks at the files that the configuration names: is the certificate valid, for how long yet, and can anybody else read
 * private keys and the users' password hashes? (The directory `tokens.keys` tells of its own files when it is read.)
 *
 * @param nowMs wall clock. Throws `ConfigError` for a certificate that `inspect` would refuse, too.
 */
export function concernsOf(configuration: Configuration, nowMs: number): Concern[] {
  const { server, users, upstreams } = configuration;
  const files = server.tls.mode === "files" ? server.tls : undefined;
  const certificate =
    files === undefined
      ? []
      : certificateConcerns(readRegularFileSync(files.certFile).toString("utf8"), nowMs).map(
          (concern) => ({
            file: files.certFile,
            ...concern,
          }),
        );
  const keys = [files?.keyFile, ...Object.values(upstreams).map(({ tls }) => tls?.keyFile)];
  const secrets = [...keys, ...users.map(({ path }) => path)].filter((file) => file !== undefined);
  const exposed = [...new Set(secrets)]
    .filter((file) => isExposed(statSync(file)))
    .map((file) => ({ file, urgent: false, message: "can be read by other users" }));
  return [...certificate, ...exposed];
}

/** For the log, the admin listener, key sets, and what Node itself holds: some 40 are open when nothing runs. */
const OTHER_FILES = 200;

/**
 * Looks whether `server.limits.connections` can be reached: each connection takes a file, and one more while it talks to a
 * backend. Beyond the limit of this process neither clients nor backends nor the admin port get a connection.
 *
 * @returns undefined when there is enough, or where the limit is not known.
 */
export function fewOpenFiles(
  configuration: Configuration,
): { readonly allowed: number; readonly needed: number } | undefined {
  const allowed = openFilesAllowed();
  const connections = configuration.server.limits.connections * workersOf(configuration);
  const needed = 2 * connections + OTHER_FILES;
  return allowed === undefined || allowed >= needed ? undefined : { allowed, needed };
}
