import { existsSync } from "node:fs";
import { text as textOf } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { type Command, EXIT, type Terminal, UsageError } from "./command.ts";
import {
  CONFIGURATION_FLAGS,
  CONFIGURATION_HELP,
  configurationSources,
  needsOneOf,
  parseFlags,
} from "./arguments.ts";
import { ASKED_HELP, askRunningProxy } from "./token/asked-revocation.ts";
import {
  type ExplainerAloneOptions,
  explainerFrom,
  NOOP_OBSERVER,
  withOwnGate,
} from "../app/explanation/dry-run-gate.ts";
import { inspect } from "../app/inspection.ts";
import { ConfigError } from "../core/config-problem.ts";
import { formatDuration, parseDuration } from "../lib/text/duration.ts";
import { orList, printable, printableLines } from "../lib/text/printable.ts";
import { TokenIssuer } from "../tokens/issuer.ts";
import { type Clock, systemClock } from "../lib/clock.ts";
import { maskText } from "../observe/log/redaction.ts";
import { stepLines } from "./explain.ts";
import { formatFrom, type Marks, marksFor } from "./terminal/format.ts";
import { pastedToken, TOKEN_FLAGS, tokenFrom } from "./token/token-argument.ts";
import { NAMED_REVOCATIONS } from "../core/revocation.ts";
import { adminAddress, askAdmin, membersIn } from "./admin-address.ts";
import type { ExplainedToken } from "../core/explanation.ts";
import { newTrace } from "../core/request/token-verifier.ts";
import { readableParts } from "../tokens/verify/token-text.ts";
import { dateWords, explainVerdict, verifyToken } from "../app/explanation/explained-token.ts";

/** A decoded token without its signature. Its claims are verified only if it is accepted. */
interface InspectedToken extends Pick<ExplainedToken, "accepted" | "reason" | "steps"> {
  readonly header: Readonly<Record<string, unknown>> | undefined;
  readonly claims: Readonly<Record<string, unknown>> | undefined;
  readonly signatureCharacters: number;
  /** Its dates relative to the local clock, in words. */
  readonly clock: readonly string[];
}

/** Decodes a token without verifying it. */
function decodeToken(token: string, { now }: Pick<Clock, "now">) {
  const { header, claims } = readableParts(token);
  return {
    accepted: false,
    reason: "not_verified",
    header,
    claims,
    steps: [],
    signatureCharacters: token.split(".")[2]?.length ?? 0,
    clock: dateWords(claims ?? {}, now()),
  } satisfies InspectedToken;
}

/**
 * Opens a gate, and verifies and decodes a token.
 * @throws ConfigError if a file that the configuration names is invalid.
 */
function inspectToken(options: ExplainerAloneOptions, token: string): Promise<InspectedToken> {
  return withOwnGate(options, async ({ tokens }) => {
    const trace = newTrace();
    const verdict = await verifyToken(token, tokens, trace);
    const { accepted, reason, steps } = explainVerdict(verdict, { ...options, token, trace });
    return {
      ...decodeToken(token, options.clock),
      accepted,
      reason,
      steps: steps.filter(({ step }) => step !== "bearer"),
    };
  });
}

const text = { type: "string" } as const;

const REVOKE_PATH = "/-/revoke";
/** Timeout of the request, in milliseconds. */
const ANSWER_MS = 5_000;

const REVOKE_FLAGS = { ...CONFIGURATION_FLAGS, ...TOKEN_FLAGS, url: text } as const;
/** The flags that go to the proxy. Of one that is given twice, `parseArgs` would drop the first. */
const SENT = [...NAMED_REVOCATIONS.map(({ word }) => word), "issuer", "before"];
const SENT_FLAGS = Object.fromEntries(
  SENT.map((word) => [word, { type: "string", multiple: true }] as const),
);

/** Runs `token revoke`: makes a running proxy revoke tokens. */
export async function revoke(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, { ...SENT_FLAGS, ...REVOKE_FLAGS });
  const { url } = await adminAddress(flags, terminal, REVOKE_PATH);
  const given: Readonly<Record<string, unknown>> = flags;
  for (const word of SENT) {
    for (const value of namesIn(given[word])) url.searchParams.append(word, value);
  }
  const token = tokenFrom(flags) ?? (url.search === "" ? await piped(terminal) : undefined);
  const { status, message } = await ask(url, token);
  if (status !== 200) throw new Error(message);
  terminal.out(`${message}\n`);
  if (token === undefined && !url.searchParams.has("before")) terminal.err(UNKNOWN);
  return EXIT.done;
}

/** Nobody keeps a list of tokens: a misspelt name is revoked like any other. */
const UNKNOWN = "nothing tells whether there are such tokens: check the spelling of the name\n";

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

const INSPECT_FLAGS = { ...CONFIGURATION_FLAGS, ...TOKEN_FLAGS, format: text } as const;

/** Runs `token inspect`. */
async function inspectOne(args: readonly string[], terminal: Terminal): Promise<number> {
  const { words, others } = apart(args);
  const flags = parseFlags(others, INSPECT_FLAGS);
  const format = formatFrom(flags.format, ["text", "json"]);
  const named = tokenFrom(flags);
  if (words.length + (named === undefined ? 0 : 1) > 1) {
    throw new UsageError("give one token, not several");
  }
  const token = pastedToken(named ?? words[0] ?? (await textOf(terminal.input)), "inspect");
  const sources = configurationSources(flags, terminal);
  const print = (found: InspectedToken): void =>
    terminal.out(
      format === "json"
        ? `${JSON.stringify(found, undefined, 2)}\n`
        : inspectedText(found, marksFor(terminal)),
    );
  const configured = flags.config ?? terminal.env["SALLYPORT_CONFIG"];
  if (!configured && !existsSync(sources.file)) {
    terminal.err(`nothing was verified: there is no configuration; name one with --config\n`);
    print(decodeToken(token, systemClock));
    return EXIT.failed;
  }
  const snapshot = await inspect(sources);
  const askRevocation = askRunningProxy(snapshot.configuration);
  const explainer = { ...(await explainerFrom(snapshot)), askRevocation };
  const found = await inspectToken(explainer, token);
  if (snapshot.configuration.tokens.keys === undefined) {
    terminal.err("without tokens.keys, the running proxy has its own key: use its /-/explain\n");
  }
  print(found);
  return found.accepted ? EXIT.done : EXIT.failed;
}

/** Separates words from flags, so that an error about arguments never repeats a token. */
function apart(args: readonly string[]): { words: string[]; others: string[] } {
  const { tokens } = parseArgs({
    args: [...args],
    options: INSPECT_FLAGS,
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const places = new Set(
    tokens.flatMap((each) => (each.kind === "positional" ? [each.index] : [])),
  );
  return {
    words: args.filter((_word, index) => places.has(index)),
    others: args.filter((_word, index) => !places.has(index)),
  };
}

function inspectedText(found: InspectedToken, marks: Marks): string {
  const { accepted, reason, header, claims, signatureCharacters, clock, steps } = found;
  const lines = [
    accepted ? `${marks.good} accepted here` : `${marks.bad} not accepted here: ${reason}`,
    ...stepLines(steps, marks),
    "",
    "Header",
    ...fieldLines(header),
    "",
    accepted ? "Claims" : "Claims, not verified",
    ...fieldLines(claims),
    "",
    "Signature",
    `  ${signatureCharacters} characters, not shown`,
    "",
    `Dates, at ${new Date().toISOString()} here`,
    ...(clock.length === 0 ? ["  none"] : clock.map((line) => `  ${line}`)),
  ];
  return `${printableLines(lines.join("\n"))}\n`;
}

function fieldLines(fields: Readonly<Record<string, unknown>> | undefined): string[] {
  if (fields === undefined) return ["  cannot be read"];
  return Object.entries(fields).map(
    ([name, value]) => `  ${name}: ${maskText(JSON.stringify(value) ?? "")}`,
  );
}

const LONGEST_MS = 366 * 24 * 3_600_000;

/**
 * Runs `token mint`.
 * @throws ConfigError if `tokens.keys` is not set: no running proxy would accept a token signed with a key generated
 * now.
 */
export async function mint(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...CONFIGURATION_FLAGS,
    subject: text,
    groups: text,
    lifetime: text,
    jkt: text,
  });
  const { subject = "" } = flags;
  if (subject === "") throw new UsageError("--subject is required");
  const groups = (flags.groups ?? "").split(",").flatMap((group) => group.trim() || []);
  const wanted = flags.lifetime === undefined ? undefined : lifetimeOf(flags.lifetime);
  const sources = configurationSources(flags, terminal);
  const snapshot = await inspect(sources);
  const { issuer, audience, keys: directory, lifetime } = snapshot.configuration.tokens;
  if (directory === undefined) {
    const message = "tokens.keys is not set: no running proxy would have the key";
    throw new ConfigError([{ file: sources.file, message }]);
  }
  const explainer = await explainerFrom(snapshot);
  const { keys, clock } = explainer;
  if (keys.signing === undefined) throw new Error(`no key in ${directory} signs at this time`);
  const lifetimeMs = wanted ?? lifetime;
  const issuing = { issuer, audience, lifetimeMs, keys, clock, observer: NOOP_OBSERVER };
  const cnf = flags.jkt === undefined ? {} : { cnf: { jkt: flags.jkt } };
  const token = await new TokenIssuer(issuing).issue(
    { name: subject, groups },
    clock.now(),
    lifetimeMs,
    cnf,
  );
  const { accepted, reason } = await inspectToken(explainer, token);
  if (!accepted) throw new Error(`this configuration would not accept the token: ${reason}`);
  terminal.out(`${token}\n`);
  const groupWords = groups.length === 0 ? "without groups" : `of ${groups.join(", ")}`;
  const note = `a token for ${subject} ${groupWords}, for ${formatDuration(lifetimeMs)}`;
  terminal.err(`${printable(note)}\n`);
  return EXIT.done;
}

function lifetimeOf(given: string): number {
  const milliseconds = parseDuration(given);
  const sound = milliseconds !== undefined && milliseconds % 1000 === 0;
  if (!sound || milliseconds < 1000 || milliseconds > LONGEST_MS) {
    throw new UsageError("--lifetime needs whole seconds up to a year, such as 15m or 1h30m");
  }
  return milliseconds;
}

const FLAGS = NAMED_REVOCATIONS.map(
  ({ word, help: [value, line] }) => `      ${`--${word} ${value}`.padEnd(22)}revoke: ${line}`,
).join("\n");
const NAMES = NAMED_REVOCATIONS.map(({ word, help: [value] }) => `--${word} ${value}`).join(" | ");

export const token: Command = {
  help: `Usage: sallyport token inspect [TOKEN] [options]
       sallyport token mint --subject NAME [options]
       sallyport token revoke [--token TOKEN | ${NAMES} | --before TIME] [options]

inspect prints the header, the claims and the dates of a token, and whether this configuration accepts it,
and if not, why. The token comes from an argument, --token, --token-file or standard input. The signature is
never printed. Exit code 0 if the token is accepted, 1 if not. Without a configuration, inspect only decodes
the token and verifies nothing; the exit code is 1.
${ASKED_HELP}

mint signs a token with a key of the configuration (tokens.keys), without a running proxy, and prints
only the token. You need read access to the keys.

revoke makes a running proxy refuse tokens before they expire: one token, from --token, --token-file or
standard input; one token by its jti; the tokens of a subject; or all tokens issued before a time. It
connects to the address of admin.listen; without a configuration file, to 127.0.0.1:9464. Exit code 1 if
nothing was revoked.

      --token TOKEN         inspect, revoke: the token
      --token-file FILE     inspect, revoke: reads the token from a file, so that no process list shows it
      --format text|json    inspect: default: text
      --subject NAME        mint: the subject
      --groups A,B          mint: the groups, separated by commas
      --lifetime DURATION   mint: the lifetime, such as 15m (default: tokens.lifetime)
      --jkt THUMBPRINT      mint: binds the token to a key by its RFC 7638 thumbprint, for DPoP
${FLAGS}
      --issuer ISSUER       revoke: with --subject, only the tokens of this issuer
      --before TIME         revoke: tokens issued before this time, such as 2026-11-22T10:00:00Z
      --url URL             revoke: connects there and reads no configuration
${CONFIGURATION_HELP}
  -h, --help                this text`,
  async run(args, terminal) {
    const [action = "", ...rest] = args;
    switch (action) {
      case "inspect":
        return inspectOne(rest, terminal);
      case "mint":
        return mint(rest, terminal);
      case "revoke":
        return revoke(rest, terminal);
      default:
        throw needsOneOf(["inspect", "mint", "revoke"], action);
    }
  },
};
