import { type Command, UsageError } from "./command.ts";
import { CONFIGURATION_HELP } from "./arguments.ts";
import { inspectOne } from "./token/inspect.ts";
import { mint } from "./token/mint.ts";

export const token: Command = {
  help: `Usage: sallyport token inspect [TOKEN] [options]
       sallyport token mint --subject NAME [options]

inspect tells what a token says and whether it is accepted here, and if not why: header, claims, its dates
against the clock of this machine. The token is an argument, of --token or --token-file, or comes on
standard input. The signature is never printed. Exit code 0 when it is accepted, 1 when not.

mint signs a token with the key directory of the configuration (tokens.keys), without a running proxy,
and prints it alone. Whoever can read the keys can do this; nothing revokes such a token.

      --token TOKEN         inspect: the token
      --token-file FILE     inspect: the same from a file, so that no list of programs shows it
      --format FORMAT       inspect: text (default) or json
      --subject NAME        mint: whose token it is
      --groups A,B          mint: the groups, separated by commas
      --lifetime DURATION   mint: such as 15m (default: tokens.lifetime)
${CONFIGURATION_HELP}
  -h, --help                this text`,
  async run(args, terminal) {
    const [action = "", ...rest] = args;
    switch (action) {
      case "inspect":
        return inspectOne(rest, terminal);
      case "mint":
        return mint(rest, terminal);
      default:
        throw new UsageError(`inspect or mint is wanted, not ${JSON.stringify(action)}`);
    }
  },
};
