import { effectiveConfiguration, effectiveYaml } from "../config/effective.ts";
import { pathName } from "../config/written.ts";
import { loadConfiguration } from "../config/load.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";
import { formatFrom } from "./terminal/format.ts";

export const config: Command = {
  help: `Usage: sallyport config [options]

Prints the effective configuration, including defaults, and the origin of each value: a flag, an
environment variable, a line of the file, or the default. Values that may be secret are masked. The
command does not read the files that the configuration names.

${CONFIGURATION_HELP}
      --format yaml|json  default: yaml; json is a list of key, value and origin
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, { ...CONFIGURATION_FLAGS, format: { type: "string" } });
    const format = formatFrom(flags.format, ["yaml", "json"]);
    const effective = effectiveConfiguration(
      loadConfiguration(configurationSources(flags, terminal)),
    );
    if (format === "yaml") {
      terminal.out(effectiveYaml(effective));
      return EXIT.done;
    }
    const rows = effective.values.map(({ path, value, origin }) => ({
      key: pathName(path),
      value,
      origin,
    }));
    terminal.out(`${JSON.stringify(rows, undefined, 2)}\n`);
    return EXIT.done;
  },
};
