import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import type { ConfigurationSources } from "../config/load.ts";
import { parseDuration } from "../lib/duration.ts";
import { type Terminal, UsageError } from "./command.ts";

/** Flags that every command which reads a configuration has. */
export const CONFIGURATION_FLAGS = {
  config: { type: "string", short: "c" },
  set: { type: "string", multiple: true },
} as const satisfies ParseArgsOptionsConfig;

export const CONFIGURATION_HELP = `  -c, --config FILE     the configuration file (default: $SALLYPORT_CONFIG, else config.yaml)
      --set KEY=VALUE   overrides one value, for example --set server.listen=127.0.0.1:8443`;

/**
 * `parseArgs` with unknown flags as `UsageError`.
 *
 * @throws UsageError for flags that the command does not have and for words that it does not take.
 */
export function parseFlags<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // What follows is advice on positional arguments, which no command takes.
    throw new UsageError(message.replace(/\. .*$/s, ""));
  }
}

/**
 * @param leastMs the shortest one that makes sense.
 * @returns milliseconds.
 * @throws UsageError for what is no duration, or a shorter one.
 */
export function durationFlag(flag: string, text: string, leastMs = 0): number {
  const milliseconds = parseDuration(text);
  if (milliseconds === undefined || milliseconds < leastMs) {
    throw new UsageError(`--${flag} wants a duration such as 30s, not ${text}`);
  }
  return milliseconds;
}

/** What `parseFlags` gives for `CONFIGURATION_FLAGS`. */
export interface ConfigurationFlagValues {
  readonly config?: string | undefined;
  readonly set?: readonly string[] | undefined;
}

/**
 * Where the configuration comes from. The file is the flag's, else that of the variable SALLYPORT_CONFIG, else
 * `config.yaml`.
 *
 * @throws UsageError for a `--set` that is not KEY=VALUE.
 */
export function configurationSources(
  flags: ConfigurationFlagValues,
  terminal: Terminal,
): ConfigurationSources {
  // This variable is ours and not a key of the configuration.
  const { SALLYPORT_CONFIG: fromVariable, ...env } = terminal.env;
  const file = flags.config ?? (fromVariable || "config.yaml");
  return { file, env, overrides: overridesOf(flags.set) };
}

function overridesOf(pairs: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`--set wants KEY=VALUE, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)] as const;
    }),
  );
}
