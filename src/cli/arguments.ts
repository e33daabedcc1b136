import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import type { ConfigurationSources } from "../config/load.ts";
import { parseDuration } from "../lib/text/duration.ts";
import { nearest } from "../lib/text/nearest.ts";
import { orList } from "../lib/text/printable.ts";
import { type Terminal, UsageError } from "./command.ts";

/** The flags of every command that reads a configuration. */
export const CONFIGURATION_FLAGS = {
  config: { type: "string", short: "c" },
  set: { type: "string", multiple: true },
} as const satisfies ParseArgsOptionsConfig;

export const CONFIGURATION_HELP = `  -c, --config FILE     the configuration file (default: $SALLYPORT_CONFIG, else config.yaml)
      --set KEY=VALUE   overrides one value, for example --set server.listen=127.0.0.1:8443`;

/**
 * Calls `parseArgs`.
 *
 * @throws UsageError for unknown flags and for positional arguments.
 */
export function parseFlags<const Options extends ParseArgsOptionsConfig>(
  args: readonly string[],
  options: Options,
) {
  try {
    return parseArgs({ args: [...args], options, strict: true, allowPositionals: false }).values;
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    // The rest is advice on positional arguments, which no command has.
    const [sentence = message] = message.split(/\. /);
    throw new UsageError(`${sentence}${meantFlag(sentence, Object.keys(options))}`);
  }
}

/**
 * Lets the only word without a flag be the value of one: `check FILE` is `check --config FILE`. Where the flag is given,
 * too, the word stays, and is refused as unexpected.
 */
export function wordAs(
  flag: string,
  args: readonly string[],
  options: ParseArgsOptionsConfig,
): readonly string[] {
  const loose = { strict: false, allowPositionals: true, tokens: true } as const;
  const { tokens, positionals, values } = parseArgs({ args: [...args], options, ...loose });
  const word = tokens.find(({ kind }) => kind === "positional");
  if (word === undefined || positionals.length > 1 || values[flag] !== undefined) return args;
  return args.toSpliced(word.index, 1, `--${flag}=${positionals[0]}`);
}

/** Returns the error for a sub-command that is missing or unknown. */
export function needsOneOf(actions: readonly string[], given: string): UsageError {
  const meant = nearest(given, actions);
  const said = given === "" ? "" : `, not ${given}`;
  const question = given === "" || meant === undefined ? "" : `; did you mean ${meant}?`;
  return new UsageError(`needs ${orList(actions)}${said}${question}`);
}

/** Short options of other programs. */
const SHORT: Readonly<Record<string, string>> = {
  o: "format",
  f: "config",
  u: "url",
  t: "timeout",
};

/** Returns the end of a sentence that suggests the flag most similar to an unknown one; empty if none is similar. */
function meantFlag(sentence: string, flags: readonly string[]): string {
  const [, given = ""] = /^Unknown option '--?([^'=]+)/.exec(sentence) ?? [];
  const [, file] = /^Unexpected argument '([^']+\.ya?ml)'/.exec(sentence) ?? [];
  if (file !== undefined && flags.includes("config")) return `; did you mean --config ${file}?`;
  const other = SHORT[given];
  if (other !== undefined) return flags.includes(other) ? `; did you mean --${other}?` : "";
  const meant = given.length < 2 ? undefined : nearest(given, [...flags, "help"]);
  return meant === undefined ? "" : `; did you mean --${meant}?`;
}

/**
 * @param leastMs the shortest valid duration.
 * @returns milliseconds.
 * @throws UsageError if the text is not a duration, or too short.
 */
export function durationFlag(flag: string, text: string, leastMs = 0): number {
  const milliseconds = parseDuration(text);
  if (milliseconds === undefined || milliseconds < leastMs) {
    throw new UsageError(`--${flag} needs a duration such as 30s, not ${text}`);
  }
  return milliseconds;
}

/** The result of `parseFlags` for `CONFIGURATION_FLAGS`. */
export interface ConfigurationFlagValues {
  readonly config?: string | undefined;
  readonly set?: readonly string[] | undefined;
}

/**
 * Returns the sources of the configuration. The flag `--config` names the file, else the variable SALLYPORT_CONFIG;
 * the default is `config.yaml`.
 *
 * @throws UsageError for a `--set` that is not KEY=VALUE.
 */
export function configurationSources(
  flags: ConfigurationFlagValues,
  terminal: Terminal,
): ConfigurationSources {
  // This variable is not a key of the configuration.
  const { SALLYPORT_CONFIG: fromVariable, ...env } = terminal.env;
  const file = flags.config ?? (fromVariable || "config.yaml");
  return { file, env, overrides: overridesOf(flags.set) };
}

function overridesOf(pairs: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`--set needs KEY=VALUE, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)] as const;
    }),
  );
}
