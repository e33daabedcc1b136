import { openApi } from "../app/api-description.ts";
import { loadConfiguration } from "../config/load.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  parseFlags,
} from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";
import { ownVersion } from "./version.ts";

export const openapi: Command = {
  help: `Usage: sallyport openapi [options]

Prints the OpenAPI 3.1 description of the main listener's own endpoints, as configured. It does not read the
files that the configuration names. A running proxy has it at /-/openapi on the admin listener.

${CONFIGURATION_HELP}
  -h, --help            this text`,
  async run(args, terminal) {
    const flags = parseFlags(args, CONFIGURATION_FLAGS);
    const { configuration } = loadConfiguration(configurationSources(flags, terminal));
    terminal.out(`${JSON.stringify(openApi(configuration, ownVersion()), undefined, 2)}\n`);
    return EXIT.done;
  },
};
