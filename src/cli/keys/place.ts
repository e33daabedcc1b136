import { loadConfiguration } from "../../config/load.ts";
import { isSigningAlgorithm, type SigningAlgorithm } from "../../tokens/algorithms.ts";
import { CONFIGURATION_FLAGS, configurationSources } from "../arguments.ts";
import { type Terminal, UsageError } from "../command.ts";

/** Flags that every command on keys has. */
export const PLACE_FLAGS = {
  ...CONFIGURATION_FLAGS,
  directory: { type: "string", short: "d" },
  algorithm: { type: "string" },
} as const;

interface PlaceFlagValues {
  readonly config?: string | undefined;
  readonly set?: readonly string[] | undefined;
  readonly directory?: string | undefined;
  readonly algorithm?: string | undefined;
}

/** Where keys are, and what is known of the tokens that they sign. */
export interface KeyPlace {
  readonly directory: string;
  /** Undefined when neither the flags nor a configuration say. */
  readonly algorithm: SigningAlgorithm | undefined;
  /** How long tokens live, in milliseconds. */
  readonly lifetimeMs: number | undefined;
}

/**
 * The place that the flags name. With `--directory` a configuration is read only if `--config` names one.
 *
 * @throws UsageError when there is none, ConfigError when the configuration is not valid.
 */
export function placeOf(flags: PlaceFlagValues, terminal: Terminal): KeyPlace {
  const named = algorithmIn(flags.algorithm);
  const configured = flags.config !== undefined || flags.set !== undefined;
  if (flags.directory !== undefined && !configured) {
    return { directory: flags.directory, algorithm: named, lifetimeMs: undefined };
  }
  const { tokens } = loadConfiguration(configurationSources(flags, terminal)).configuration;
  if (named !== undefined && named !== tokens.algorithm) {
    throw new UsageError(`--algorithm is ${named}, but tokens.algorithm is ${tokens.algorithm}`);
  }
  const directory = flags.directory ?? tokens.keys;
  if (directory === undefined) {
    throw new UsageError("the configuration names no directory tokens.keys; say --directory");
  }
  return { directory, algorithm: tokens.algorithm, lifetimeMs: tokens.lifetime };
}

function algorithmIn(name: string | undefined): SigningAlgorithm | undefined {
  if (name === undefined || isSigningAlgorithm(name)) return name;
  throw new UsageError(`--algorithm wants one such as ES256, not ${name}`);
}

/** To the second, in UTC; a word where it is no time. */
export function timeText(milliseconds: number): string {
  if (milliseconds === Infinity) return "no end";
  return new Date(milliseconds).toISOString().replace(/\.\d+Z$/, "Z");
}
