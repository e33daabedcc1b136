import { text as textOf } from "node:stream/consumers";
import { NAMED_REVOCATIONS } from "../../core/revocation.ts";
import { orList, printable } from "../../lib/text/printable.ts";
import { adminAddress, askAdmin, membersIn } from "../admin-address.ts";
import { CONFIGURATION_FLAGS, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";
import { pastedToken, TOKEN_FLAGS, tokenFrom } from "./token-argument.ts";

const PATH = "/-/revoke";
/** Timeout of the request, in milliseconds. */
const ANSWER_MS = 5_000;

const text = { type: "string" } as const;
const FLAGS = {
  ...CONFIGURATION_FLAGS,
  ...TOKEN_FLAGS,
  url: text,
  issuer: text,
  before: text,
} as const;
/** What `--before` and `--issuer` go with can be named once. */
const NAME_FLAGS = Object.fromEntries(
  NAMED_REVOCATIONS.map(({ word, dated }) => [word, { type: "string", multiple: !dated }] as const),
);

/** Runs `token revoke`: makes a running proxy revoke tokens. */
export async function revoke(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, { ...NAME_FLAGS, ...FLAGS });
  const { issuer, before } = flags;
  const { url } = await adminAddress(flags, terminal, PATH);
  const given: Readonly<Record<string, unknown>> = flags;
  for (const { word } of NAMED_REVOCATIONS) {
    for (const name of namesIn(given[word])) url.searchParams.append(word, name);
  }
  for (const [name, value] of Object.entries({ issuer, before })) {
    if (value !== undefined) url.searchParams.set(name, value);
  }
  const named = [...url.searchParams.keys()].length > 0;
  const token = tokenFrom(flags) ?? (named ? undefined : await piped(terminal));
  const { status, message } = await ask(url, token);
  if (status !== 200) throw new Error(message);
  terminal.out(`${message}\n`);
  return EXIT.done;
}

function namesIn(value: unknown): string[] {
  return [value].flat().filter((name) => typeof name === "string");
}

async function piped({ input }: Terminal): Promise<string> {
  if (input.isTTY === true) {
    const flags = [...NAMED_REVOCATIONS.map(({ word }) => word), "before"];
    throw new UsageError(`name a token, ${orList(flags.map((flag) => `--${flag}`))}`);
  }
  return pastedToken(await textOf(input), "revoke");
}

/** @throws the system's error if there is no response. */
async function ask(
  url: URL,
  token: string | undefined,
): Promise<{ status: number; message: string }> {
  const response = await askAdmin(url, {
    method: "POST",
    headers: token === undefined ? {} : { authorization: `Bearer ${token}` },
    timeoutMs: ANSWER_MS,
    late: `no answer within ${ANSWER_MS} ms`,
  });
  const { statusCode: status = 0 } = response;
  const { message } = await membersIn(response);
  // Another program that listens there sends no message.
  const words = typeof message === "string" ? printable(message) : undefined;
  return { status, message: words ?? `the admin listener says ${status}` };
}
