import { type Command, UsageError } from "./command.ts";
import { list } from "./keys/list.ts";
import { retire } from "./keys/retire.ts";
import { generate, rotate } from "./keys/new-keys.ts";
import { CONFIGURATION_HELP } from "./arguments.ts";

const ACTIONS = new Map(Object.entries({ generate, list, rotate, retire }));

export const keys: Command = {
  help: `Usage: sallyport keys generate|list|rotate|retire [options]

Manages the files of a key directory. Each file states when its key signs and verifies, and every running
Sallyport that uses the directory follows it.

  generate              makes the first key, which signs at once
  list                  shows the state of each key: published (signs later), signing, verifying, expired
  rotate                makes a key that is published first and signs later; older keys verify until
                        the last token that they signed has expired
  retire                removes the expired keys

  -d, --directory DIR   the directory (default: tokens.keys of the configuration)
      --algorithm NAME  signature algorithm (default: tokens.algorithm, else that of the newest key, else
                        ES256)
      --assertion       manages the assertion keys: uses keys, lifetime and algorithm of tokens.assertion
${CONFIGURATION_HELP}
      --name NAME       generate, rotate: name of the new file, without .jwk
      --publish-for D   rotate: how long the new key is published before it signs (default: 10m); must be
                        longer than the files take to reach every replica
      --lifetime D      rotate: lifetime of tokens (default: tokens.lifetime; required without a
                        configuration)
      --kid KID         retire: only this key
      --force           generate: even if there is a key; retire: even if it may still verify
      --format text|json  list: default: text
  -h, --help            this text`,
  async run(args, terminal) {
    const [name = "", ...rest] = args;
    const action = ACTIONS.get(name);
    if (action === undefined) {
      const said = name === "" ? "" : `, not ${name}`;
      throw new UsageError(`needs generate, list, rotate or retire${said}`);
    }
    return action(rest, terminal);
  },
};
