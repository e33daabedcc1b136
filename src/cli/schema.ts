import { jsonSchema } from "../config/schema-parts.ts";
import { parseFlags } from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";

export const schema: Command = {
  help: `Usage: sallyport schema > config.schema.json

Prints the JSON Schema (draft 2020-12) of the configuration file. Editors with a YAML language server
use it if the first line of the file is
  # yaml-language-server: $schema=./config.schema.json

  -h, --help            this text`,
  async run(args, terminal) {
    parseFlags(args, {});
    terminal.out(`${JSON.stringify(jsonSchema(), undefined, 2)}\n`);
    return EXIT.done;
  },
};
