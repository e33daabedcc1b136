import { isUtf8 } from "node:buffer";
import {
  hashPassword as phcStringOf,
  MAX_PASSWORD_BYTES,
} from "../credentials/hashing/new-hash.ts";
import { parseFlags } from "./arguments.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";
import { askPasswordTwice } from "./terminal/prompt.ts";

export const hashPassword: Command = {
  help: `Usage: sallyport hash-password

On a terminal, asks twice for a password without showing it. Otherwise reads it from standard input,
ignoring one line break at the end. Prints the argon2id hash for a users file.

  -h, --help            this text`,
  async run(args, terminal) {
    parseFlags(args, {});
    const password =
      terminal.input.isTTY === true ? await askPasswordTwice(terminal) : await piped(terminal);
    terminal.out(`${phcStringOf(password)}\n`);
    return EXIT.done;
  },
};

async function piped({ input }: Terminal): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    // This is already too long to be accepted.
    if (length > MAX_PASSWORD_BYTES + 2) break;
  }
  const all = Buffer.concat(chunks);
  // Logins send UTF-8, so no login would match. A text that is too long may end within a character.
  if (length <= MAX_PASSWORD_BYTES + 2 && !isUtf8(all)) {
    throw new Error("the password is not UTF-8 text");
  }
  return all.toString("utf8").replace(/\r?\n$/, "");
}
