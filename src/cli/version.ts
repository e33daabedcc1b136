import about from "../../package.json" with { type: "json" };
import { parseFlags } from "./arguments.ts";
import { type Command, EXIT } from "./command.ts";

export const version: Command = {
  help: `Usage: sallyport version [options]

      --verbose         prints the version of Node, too
  -h, --help            this text`,
  async run(args, terminal) {
    const { verbose = false } = parseFlags(args, { verbose: { type: "boolean" } });
    terminal.out(
      verbose ? `sallyport ${ownVersion()}\nnode ${process.versions.node}\n` : `${ownVersion()}\n`,
    );
    return EXIT.done;
  },
};

/** Returns the version of package.json, which the bundle includes. */
export function ownVersion(): string {
  return about.version;
}
