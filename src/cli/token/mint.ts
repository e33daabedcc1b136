import { inspectToken } from "../../app/explanation/inspect-token.ts";
import { explainerFrom, NOOP_OBSERVER } from "../../app/explanation/dry-run-gate.ts";
import { inspect } from "../../app/inspection.ts";
import { ConfigError } from "../../core/config-problem.ts";
import { formatDuration, parseDuration } from "../../lib/text/duration.ts";
import { printable } from "../../lib/text/printable.ts";
import { TokenIssuer } from "../../tokens/issuer.ts";
import { CONFIGURATION_FLAGS, configurationSources, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";

const text = { type: "string" } as const;
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
  const token = await new TokenIssuer(issuing).issue({ name: subject, groups }, clock.now());
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
