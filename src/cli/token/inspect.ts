import { existsSync } from "node:fs";
import { text as textOf } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { explainerFrom } from "../../app/explanation/dry-run-gate.ts";
import {
  decodeToken,
  type InspectedToken,
  inspectToken,
} from "../../app/explanation/inspect-token.ts";
import { inspect } from "../../app/inspection.ts";
import { systemClock } from "../../lib/clock.ts";
import { printableLines } from "../../lib/text/printable.ts";
import { maskText } from "../../observe/log/redaction.ts";
import { CONFIGURATION_FLAGS, configurationSources, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";
import { stepLines } from "../explain.ts";
import { formatFrom, type Marks, marksFor } from "../terminal/format.ts";
import { askRunningProxy } from "./asked-revocation.ts";
import { pastedToken, TOKEN_FLAGS, tokenFrom } from "./token-argument.ts";

const FLAGS = { ...CONFIGURATION_FLAGS, ...TOKEN_FLAGS, format: { type: "string" } } as const;

/** Runs `token inspect`. */
export async function inspectOne(args: readonly string[], terminal: Terminal): Promise<number> {
  const { words, others } = apart(args);
  const flags = parseFlags(others, FLAGS);
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
    options: FLAGS,
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
