import { effectiveConfiguration } from "../config/effective.ts";
import { effectiveYaml } from "../config/effective-yaml.ts";
import { pathName } from "../config/fault.ts";
import { loadConfiguration } from "../config/load.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";
import { formatFrom } from "./format.ts";

export const config: Command = {
  help: `Usage: sallyport config [options]

Prints the configuration that is in force, defaults included, and where each value comes from: a flag, a
variable of the environment, a line of the file, or the default. What could be a secret is masked. The
files that the configuration names are not read.

${CONFIGURATION_HELP}
      --format FORMAT   yaml (default), or json: a list of key, value and origin
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
