import { isUtf8 } from "node:buffer";
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { hashPassword as phcStringOf, MAX_PASSWORD_BYTES } from "../credentials/hash-password.ts";
import { parseFlags } from "./arguments.ts";
import { type Command, EXIT, type Terminal } from "./command.ts";

export const hashPassword: Command = {
  help: `Usage: sallyport hash-password

On a terminal, asks twice for a password and does not show it; else reads it from standard input, where
one line break at the end does not count. Prints the argon2id hash for a users file.

  -h, --help            this text`,
  async run(args, terminal) {
    parseFlags(args, {});
    const password =
      terminal.input.isTTY === true ? await typedTwice(terminal) : await piped(terminal);
    terminal.out(`${phcStringOf(password)}\n`);
    return EXIT.done;
  },
};

async function typedTwice(terminal: Terminal): Promise<string> {
  // The line editor switches the terminal's own echo off, and what it would show goes nowhere.
  const output = new Writable({ write: (_shown, _encoding, done) => done() });
  const editor = createInterface({ input: terminal.input, output, terminal: true, historySize: 0 });
  const lines = editor[Symbol.asyncIterator]();
  const ask = async (question: string): Promise<string> => {
    terminal.err(question);
    const { done, value } = await lines.next();
    terminal.err("\n");
    if (done === true) throw new Error("no password was typed");
    return value;
  };
  try {
    const password = await ask("Password: ");
    if ((await ask("Again: ")) !== password) throw new Error("the two passwords differ");
    return password;
  } finally {
    editor.close();
  }
}

async function piped({ input }: Terminal): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    const bytes = Buffer.from(chunk);
    chunks.push(bytes);
    length += bytes.length;
    // Enough to be refused, whatever follows.
    if (length > MAX_PASSWORD_BYTES + 2) break;
  }
  const all = Buffer.concat(chunks);
  // A login sends UTF-8, so no login would fit. What is too long may end within a character.
  if (length <= MAX_PASSWORD_BYTES + 2 && !isUtf8(all)) {
    throw new Error("the password is not UTF-8 text");
  }
  return all.toString("utf8").replace(/\r?\n$/, "");
}
