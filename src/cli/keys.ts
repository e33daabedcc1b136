import { type Command, UsageError } from "./command.ts";
import { generate } from "./keys/generate.ts";
import { list } from "./keys/list.ts";
import { retire } from "./keys/retire.ts";
import { rotate } from "./keys/rotate.ts";
import { CONFIGURATION_HELP } from "./arguments.ts";

const ACTIONS = new Map(Object.entries({ generate, list, rotate, retire }));

export const keys: Command = {
  help: `Usage: sallyport keys generate|list|rotate|retire [options]

Works on the files of a directory of keys. What each key does is in its file, so a running Sallyport that
sees the files changes with them, and so does every replica.

  generate              makes the first key, which signs at once
  list                  tells each key: published (signs later), signing, verifying, over
  rotate                makes a key that is published first and signs later; the older ones verify
                        until the last token signed with them has ended
  retire                removes the keys that are over

  -d, --directory DIR   the directory (default: tokens.keys of the configuration)
      --algorithm NAME  what tokens are signed with (default: tokens.algorithm, else that of the newest
                        key, else ES256)
${CONFIGURATION_HELP}
      --name NAME       generate, rotate: name of the new file, without .jwk
      --publish-for D   rotate: how long the new key is published before it signs (default: 10m); longer
                        than the files take to reach every replica
      --lifetime D      rotate: how long tokens live (default: tokens.lifetime; needed without a
                        configuration)
      --kid KID         retire: only this key
      --force           generate: although there is a key; retire: although it may still verify
      --format FORMAT   list: text (default) or json
  -h, --help            this text`,
  async run(args, terminal) {
    const [name = "", ...rest] = args;
    const action = ACTIONS.get(name);
    if (action === undefined) {
      const said = name === "" ? "" : `, not ${name}`;
      throw new UsageError(`wants generate, list, rotate or retire${said}`);
    }
    return action(rest, terminal);
  },
};
