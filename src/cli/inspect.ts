import type { ReadConfiguration } from "../app/reload.ts";
import { pathName } from "../config/fault.ts";
import {
  type ConfigurationSources,
  loadConfiguration,
  type LoadedConfiguration,
} from "../config/load.ts";
import { checkNamedFiles, filesReadAlong } from "../config/named-files.ts";
import type { Configuration } from "../config/schema.ts";
import { ConfigError, type ConfigProblem } from "../core/config-problem.ts";
import type { Log } from "../core/log.ts";
import { usersBytes, usersIn } from "../credentials/users-reading.ts";
import { systemClock } from "../lib/clock.ts";
import { fingerprintOfFile } from "../lib/fingerprint.ts";
import { readAuthorities, readCertificate } from "../server/certificate.ts";
import { loadSigningKeys } from "../tokens/signing-keys.ts";
import { openTrustedKeyFile } from "../tokens/trusted-key-file.ts";

/** A look into files that the configuration names. */
interface Look {
  /** The keys that name them, as in `server.tls.certFile`. */
  readonly keys: readonly string[];
  /** Throws `ConfigError` when they cannot be used. */
  into(): unknown;
}

/**
 * Reads the configuration and everything that it names, as a start would.
 *
 * @throws ConfigError with everything that is wrong with the configuration; with a sound one, everything that is wrong
 *   with the files that it names.
 */
export async function inspect(sources: ConfigurationSources): Promise<Configuration> {
  const { configuration } = await readForReload(sources);
  return configuration;
}

/** The same, with what the configuration was read from: a change of these files calls for another reading. */
export async function readForReload(sources: ConfigurationSources): Promise<ReadConfiguration> {
  const loaded = loadConfiguration(sources);
  // Taken before they are looked into: what changes meanwhile is seen as a change.
  const readAlong = filesReadAlong(loaded.configuration).map(
    (file) => [file, fingerprintOfFile(file)] as const,
  );
  const { problems, keys: missing } = missingFiles(loaded);
  for (const look of looksInto(loaded.configuration)) {
    // A file that is not there was told already, with its place in the configuration.
    if (!look.keys.some((key) => missing.has(key))) problems.push(...(await problemsOf(look)));
  }
  if (problems.length > 0) throw new ConfigError(problems);
  const { configuration, files } = loaded;
  return { configuration, files: new Map([...files, ...readAlong]) };
}

function missingFiles(loaded: LoadedConfiguration) {
  const keys = new Set<string>();
  const problems = checkNamedFiles({
    configuration: loaded.configuration,
    problem(fault) {
      keys.add(pathName(fault.path));
      return loaded.problem(fault);
    },
  });
  return { problems, keys };
}

async function problemsOf(look: Look): Promise<readonly ConfigProblem[]> {
  try {
    await look.into();
    return [];
  } catch (error) {
    if (error instanceof ConfigError) return error.problems;
    throw error;
  }
}

function looksInto({ server, users, tokens, upstreams }: Configuration): Look[] {
  const looks: Look[] = users.map(({ path }, index) => ({
    keys: [`users[${index}].path`],
    into: async () => usersIn(await usersBytes(path), path),
  }));
  if (server.tls.mode === "files") {
    looks.unshift(lookIntoPair("server.tls", server.tls.certFile, server.tls.keyFile));
  }
  const authorities = server.tls.mode === "off" ? undefined : server.tls.clientCertificates?.caFile;
  if (authorities !== undefined) {
    const keys = ["server.tls.clientCertificates.caFile"];
    looks.push({ keys, into: () => readAuthorities(authorities) });
  }
  const { algorithm, keys: directory, trusted } = tokens;
  if (directory !== undefined) {
    const into = () => loadSigningKeys({ algorithm, directory, log: SILENT });
    looks.push({ keys: ["tokens.keys"], into });
  }
  for (const [index, { clockSkew, ...issuer }] of trusted.entries()) {
    const { jwks } = issuer;
    if (!("file" in jwks)) continue;
    const context = { clock: systemClock, log: SILENT, changed: quiet };
    looks.push({
      keys: [`tokens.trusted[${index}].jwks.file`],
      into: () =>
        openTrustedKeyFile(jwks.file, { ...issuer, clockSkewMs: clockSkew }, context).close(),
    });
  }
  for (const [name, { tls }] of Object.entries(upstreams)) {
    const { caFile, certFile, keyFile } = tls ?? {};
    const section = `upstreams.${name}.tls`;
    if (caFile !== undefined) {
      looks.push({ keys: [`${section}.caFile`], into: () => readAuthorities(caFile) });
    }
    if (certFile !== undefined && keyFile !== undefined) {
      looks.push(lookIntoPair(section, certFile, keyFile));
    }
  }
  return looks;
}

function lookIntoPair(section: string, certFile: string, keyFile: string): Look {
  return {
    keys: [`${section}.certFile`, `${section}.keyFile`],
    into: () => readCertificate(certFile, keyFile),
  };
}

const quiet = (): void => undefined;
const SILENT: Log = { debug: quiet, info: quiet, warn: quiet, error: quiet };
