import { join } from "node:path";
import { loadConfiguration } from "../../src/config/load.ts";
import { isSigningAlgorithm, type SigningAlgorithm } from "../../src/tokens/keys/algorithms.ts";
import {
  CONFIGURATION_FLAGS,
  durationFlag,
  type ConfigurationFlagValues,
  configurationSources,
} from "../../src/cli/arguments.ts";
import { type Terminal, UsageError } from "../../src/cli/command.ts";
import { keyFileName, makeNamedKey } from "../../src/tokens/keys/key-making.ts";
import { writeNewKey } from "../../src/tokens/keys/key-directory.ts";
import { systemCode } from "../../src/lib/text/error-code.ts";

interface NewKeyOptions {
  readonly directory: string;
  readonly algorithm: SigningAlgorithm;
  /** The file name without its ending; by default the date and the beginning of the kid. */
  readonly name: string | undefined;
  /** Milliseconds since the epoch. */
  readonly nowMs: number;
  /** When the newest existing key was made, if there is one. The `iat` of the new key is at least a second later. */
  readonly newestMs: number | undefined;
  readonly signsFromMs: number;
}

/** Valid names of files in a Kubernetes Secret, except those with a leading dot: Sallyport ignores such files. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]*$/;

/**
 * Generates a key and writes it to a new file.
 *
 * @throws UsageError for a name that is invalid or taken.
 */
export async function makeKeyFile(order: NewKeyOptions): Promise<{ kid: string; file: string }> {
  const { directory, algorithm, nowMs, newestMs = 0, signsFromMs } = order;
  const { kid, key } = await makeNamedKey(algorithm);
  const name = order.name ?? keyFileName(kid, nowMs);
  if (!NAME.test(name))
    throw new UsageError(`--name takes letters, digits, . _ and -, not ${name}`);
  const file = join(directory, `${name.replace(/\.jwk$/, "")}.jwk`);
  const iat = Math.max(Math.floor(nowMs / 1000), Math.floor(newestMs / 1000) + 1);
  const dates = { iat, nbf: Math.floor(signsFromMs / 1000) };
  try {
    await writeNewKey(file, { kid, key, alg: algorithm, ...dates });
  } catch (error) {
    const taken = systemCode(error) === "EEXIST";
    throw taken ? new UsageError(`${file} already exists; choose another --name`) : error;
  }
  return { kid, file };
}

/** The flags of every command on keys. */
export const LOCATION_FLAGS = {
  ...CONFIGURATION_FLAGS,
  directory: { type: "string", short: "d" },
  algorithm: { type: "string" },
  assertion: { type: "boolean" },
} as const;

interface LocationFlagValues extends ConfigurationFlagValues {
  readonly directory?: string | undefined;
  readonly algorithm?: string | undefined;
  /** Whether the command manages assertion keys instead of token keys. */
  readonly assertion?: boolean | undefined;
}

/** The directory of the keys, and the algorithm and lifetime of their tokens, if known. */
interface KeyLocation {
  readonly directory: string;
  /** Undefined if neither the flags nor a configuration set it. */
  readonly algorithm: SigningAlgorithm | undefined;
  /** The lifetime of tokens in milliseconds: that of the flag `--lifetime`, else the configured one. @throws UsageError */
  readonly lifetimeMs: (flag: string | undefined) => number;
}

/**
 * Returns the directory of `--directory`, else that of the configuration. With `--directory`, reads a configuration
 * only if `--config` or `--set` is given.
 *
 * @throws UsageError if there is no directory, ConfigError if the configuration is invalid.
 */
export function keyLocation(flags: LocationFlagValues, terminal: Terminal): KeyLocation {
  const named = algorithmIn(flags.algorithm);
  const configured = flags.config !== undefined || flags.set !== undefined;
  if (flags.directory !== undefined && !configured) {
    return {
      directory: flags.directory,
      algorithm: named,
      lifetimeMs: (flag) => lifetimeOf(flag, undefined),
    };
  }
  const { tokens } = loadConfiguration(configurationSources(flags, terminal)).configuration;
  const assertion = flags.assertion === true;
  const section = assertion ? "tokens.assertion" : "tokens";
  const {
    algorithm = tokens.algorithm,
    keys,
    lifetime,
  } = assertion ? (tokens.assertion ?? {}) : tokens;
  if (named !== undefined && named !== algorithm) {
    throw new UsageError(`--algorithm is ${named}, but ${section}.algorithm is ${algorithm}`);
  }
  const directory = flags.directory ?? keys;
  if (directory === undefined) {
    throw new UsageError(`the configuration does not set ${section}.keys; use --directory`);
  }
  return { directory, algorithm, lifetimeMs: (flag) => lifetimeOf(flag, lifetime) };
}

/** Never guesses a lifetime: one that is too short would end tokens early. */
function lifetimeOf(flag: string | undefined, configured: number | undefined): number {
  if (flag === undefined) {
    if (configured !== undefined) return configured;
    throw new UsageError(
      "set the lifetime of tokens with --lifetime, or name a configuration with --config",
    );
  }
  const lifetime = durationFlag("lifetime", flag);
  if (configured !== undefined && lifetime < configured) {
    throw new UsageError("--lifetime is shorter than tokens.lifetime: tokens would end early");
  }
  return lifetime;
}

function algorithmIn(name: string | undefined): SigningAlgorithm | undefined {
  if (name === undefined || isSigningAlgorithm(name)) return name;
  throw new UsageError(`--algorithm needs one such as ES256, not ${name}`);
}

/** Formats a time to the second, in UTC. */
export function timeText(milliseconds: number): string {
  if (milliseconds === Infinity) return "no end";
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, "Z");
}
