import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { randomInt } from "node:crypto";
import type { Terminal } from "../command.ts";

/** Letters and digits that do not look alike. */
const LETTERS = "abcdefghijkmnpqrstuvwxyz23456789";

/** Returns a new password: 80 random bits in groups of four characters. */
export function readablePassword(): string {
  const group = (): string =>
    Array.from({ length: 4 }, () => LETTERS.charAt(randomInt(LETTERS.length))).join("");
  return [group(), group(), group(), group()].join("-");
}

/**
 * Opens a line editor on the terminal. The process does not end until the editor is closed.
 * @param hidden whether to hide the input.
 */
export function openPrompt(terminal: Terminal, { hidden = false } = {}) {
  // The line editor switches off the echo of the terminal and echoes itself; if `hidden`, that echo is dropped.
  const output = new Writable({
    write(shown: Buffer, _encoding, done) {
      if (!hidden) terminal.err(shown.toString("utf8"));
      done();
    },
  });
  const editor = createInterface({ input: terminal.input, output, terminal: true, historySize: 0 });
  const lines = editor[Symbol.asyncIterator]();
  return {
    /** @returns the line that was typed. @throws Error if the input ends first. */
    async ask(question: string): Promise<string> {
      terminal.err(question);
      const { done, value } = await lines.next();
      if (hidden) terminal.err("\n");
      if (done === true) throw new Error(`no answer to "${question.trim()}"`);
      return value;
    },
    close: (): void => editor.close(),
  };
}

/** Asks twice for a password without showing it. @throws Error if the two differ or the input ends. */
export async function askPasswordTwice(terminal: Terminal): Promise<string> {
  const prompt = openPrompt(terminal, { hidden: true });
  try {
    const password = await prompt.ask("Password: ");
    if ((await prompt.ask("Again: ")) !== password) throw new Error("the two passwords differ");
    return password;
  } finally {
    prompt.close();
  }
}
