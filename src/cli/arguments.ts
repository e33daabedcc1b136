import { parseArgs, type ParseArgsOptionsConfig } from "node:util";
import { UsageError } from "./command.ts";

/** Flags that every command which reads a configuration has. */
export const CONFIGURATION_FLAGS = {
  config: { type: "string", short: "c" },
  set: { type: "string", multiple: true },
} as const satisfies ParseArgsOptionsConfig;

export const CONFIGURATION_HELP = `  -c, --config FILE     the configuration file (default: config.yaml)
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
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** `KEY=VALUE` flags as overrides of the configuration. */
export function overridesOf(pairs: readonly string[] = []): Record<string, string> {
  return Object.fromEntries(
    pairs.map((pair) => {
      const at = pair.indexOf("=");
      if (at < 1) throw new UsageError(`--set wants KEY=VALUE, not ${pair}`);
      return [pair.slice(0, at), pair.slice(at + 1)] as const;
    }),
  );
}
