import { readFile } from "node:fs/promises";
import { buffer } from "node:stream/consumers";
import type { ParseArgsOptionsConfig } from "node:util";
import { listen } from "../../src/config/fields.ts";
import { type Terminal, UsageError } from "../../src/cli/command.ts";
import { askPasswordTwice, openPrompt, readablePassword } from "../../src/cli/terminal/prompt.ts";

export const INIT_FLAGS = {
  directory: { type: "string", short: "d" },
  backend: { type: "string" },
  host: { type: "string" },
  listen: { type: "string" },
  "admin-listen": { type: "string" },
  username: { type: "string" },
  browser: { type: "string" },
  "password-file": { type: "string" },
  for: { type: "string" },
  yes: { type: "boolean", short: "y" },
} as const satisfies ParseArgsOptionsConfig;

type Flags = { readonly [Flag in keyof typeof INIT_FLAGS]?: string | boolean | undefined };

/** The environments for which `init` creates a deployment. */
type Runner = (typeof RUNNERS)[number];

const RUNNERS = ["shell", "systemd", "kubernetes"] as const;
const RUNNERS_IN_WORDS = "shell, systemd or kubernetes";

/** The settings of `init`. */
export interface InitSettings {
  readonly directory: string;
  readonly backend: string;
  /** A host name or an address, without a port. */
  readonly host: string;
  /** `0.0.0.0:8443` */
  readonly listen: string;
  readonly port: number;
  /** Where health, metrics and the status page are: on the loopback, unless an option says otherwise. */
  readonly adminListen: string;
  readonly username: string;
  /** Whether people sign in with a browser. */
  readonly browser: boolean;
  readonly password: string;
  /** Whether `init` generated the password, so that it must be shown once. */
  readonly generated: boolean;
  readonly runner: Runner;
}

interface Question {
  readonly flag: "directory" | "backend" | "host" | "listen" | "username" | "browser" | "for";
  readonly text: string;
  readonly preset: string;
  /** @returns why an answer is invalid; undefined if it is valid. */
  fault(answer: string): string | undefined;
}

/** In the order in which they are asked. */
const QUESTIONS: readonly Question[] = [
  {
    flag: "directory",
    text: "Directory for the files",
    preset: "deployment",
    fault: () => undefined,
  },
  {
    flag: "backend",
    text: "URL of the backend to protect",
    preset: "http://127.0.0.1:8080",
    fault: (answer) =>
      /^https?:\/\/[^/?#\s"@]+$/.test(answer) && URL.canParse(answer)
        ? undefined
        : "must be http://HOST:PORT or https://HOST:PORT, without a path",
  },
  {
    flag: "host",
    text: "Host name that clients use",
    preset: "localhost",
    fault: (answer) =>
      /^[\w.-]{1,253}$/.test(answer)
        ? undefined
        : "must be a host name or an IPv4 address, without scheme and port",
  },
  {
    flag: "listen",
    text: "Address and port for clients",
    preset: "0.0.0.0:8443",
    fault: (answer) => (placeIn(answer) ? undefined : LISTEN_FORM),
  },
  {
    flag: "username",
    text: "Name of the first user",
    preset: "admin",
    fault: (answer) =>
      /^[\w.@-]{1,128}$/.test(answer) ? undefined : "must be letters, digits, . _ @ and -",
  },
  {
    flag: "browser",
    text: "Do people use it with a browser, yes or no",
    preset: "no",
    fault: (answer) => (/^(?:yes|no)$/.test(answer) ? undefined : "must be yes or no"),
  },
  {
    flag: "for",
    text: `Run by ${RUNNERS_IN_WORDS}`,
    preset: "shell",
    fault: (answer) => (isRunner(answer) ? undefined : `must be ${RUNNERS_IN_WORDS}`),
  },
];

/**
 * Reads the flags, and asks for the rest on a terminal, unless `--yes` is given.
 *
 * @throws UsageError for a value that cannot be used.
 */
export async function readSettings(flags: Flags, terminal: Terminal): Promise<InitSettings> {
  const interactive = terminal.input.isTTY === true && flags.yes !== true;
  const answers = interactive ? await askAll(flags, terminal) : fromFlags(flags);
  const { port = 0, host = "" } = placeIn(answers.listen) ?? {};
  const loopback = host.includes(":") ? "[::1]" : "127.0.0.1";
  const adminListen = text(flags["admin-listen"]) ?? `${loopback}:${port === 9464 ? 9465 : 9464}`;
  if (placeIn(adminListen) === undefined || adminListen === answers.listen) {
    throw new UsageError(
      `--admin-listen ${LISTEN_FORM} with a port of its own, not ${adminListen}`,
    );
  }
  const { for: runner, browser, ...rest } = answers;
  if (!isRunner(runner)) throw new UsageError(`--for must be ${RUNNERS_IN_WORDS}`);
  const secret = await passwordOf(text(flags["password-file"]), interactive, terminal);
  return { ...rest, ...secret, adminListen, port, browser: browser === "yes", runner };
}

const LISTEN_FORM = "must be ADDRESS:PORT such as 0.0.0.0:8443";

/** Returns the address and the port of a text; undefined if it has none of these forms, or port 0. */
function placeIn(written: string): { readonly host: string; readonly port: number } | undefined {
  const parsed = listen().safeParse(written);
  return parsed.success && parsed.data.port > 0 ? parsed.data : undefined;
}

type Answers = Record<Question["flag"], string>;

function fromFlags(flags: Flags): Answers {
  const answers: Answers = {
    directory: "",
    backend: "",
    host: "",
    listen: "",
    username: "",
    browser: "",
    for: "",
  };
  for (const { flag, preset, fault } of QUESTIONS) {
    const given = text(flags[flag]) ?? preset;
    const reason = fault(given);
    if (reason !== undefined) throw new UsageError(`--${flag} ${reason}, not ${given}`);
    answers[flag] = given;
  }
  return answers;
}

async function askAll(flags: Flags, terminal: Terminal): Promise<Answers> {
  const given = fromFlags(flags);
  const prompt = openPrompt(terminal);
  try {
    for (const question of QUESTIONS) {
      if (flags[question.flag] === undefined) given[question.flag] = await askOne(question);
    }
    return given;
  } finally {
    prompt.close();
  }

  async function askOne({ text: words, preset, fault }: Question): Promise<string> {
    for (;;) {
      const answer = (await prompt.ask(`${words} [${preset}]: `)).trim() || preset;
      const reason = fault(answer);
      if (reason === undefined) return answer;
      terminal.err(`  ${reason}\n`);
    }
  }
}

async function passwordOf(
  file: string | undefined,
  interactive: boolean,
  terminal: Terminal,
): Promise<Pick<InitSettings, "password" | "generated">> {
  if (file !== undefined) {
    const bytes = file === "-" ? await buffer(terminal.input) : await readFile(file);
    const password = bytes.toString("utf8").replace(/\r?\n$/, "");
    if (password === "") throw new UsageError("--password-file is empty");
    return { password, generated: false };
  }
  if (interactive) {
    terminal.err("Password of this user (nothing is shown; empty for a generated one)\n");
    const password = await askPasswordTwice(terminal);
    if (password !== "") return { password, generated: false };
  }
  return { password: readablePassword(), generated: true };
}

function text(flag: string | boolean | undefined): string | undefined {
  return typeof flag === "string" ? flag : undefined;
}

function isRunner(word: string): word is Runner {
  return RUNNERS.some((runner) => runner === word);
}
