import { inspectToken } from "../../app/explanation/inspect-token.ts";
import { SILENT_LOG, SILENT_OBSERVER } from "../../app/explanation/silent.ts";
import { ConfigError } from "../../core/config-problem.ts";
import { systemClock } from "../../lib/clock.ts";
import { formatDuration, parseDuration } from "../../lib/duration.ts";
import { printable } from "../../lib/printable.ts";
import { createTokenIssuer } from "../../tokens/issuer.ts";
import { loadSigningKeys } from "../../tokens/signing-keys.ts";
import { CONFIGURATION_FLAGS, configurationSources, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";
import { inspect } from "../inspect.ts";

const text = { type: "string" } as const;
const LONGEST_MS = 366 * 24 * 3_600_000;

/** `token mint`. @throws ConfigError without a key directory: a key made now would be known to nobody else. */
export async function mint(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...CONFIGURATION_FLAGS,
    ...{ subject: text, groups: text, lifetime: text },
  });
  const { subject = "" } = flags;
  if (subject === "") throw new UsageError("--subject is wanted");
  const groups = (flags.groups ?? "").split(",").flatMap((group) => group.trim() || []);
  const asked = flags.lifetime === undefined ? undefined : lifetimeOf(flags.lifetime);
  const sources = configurationSources(flags, terminal);
  const configuration = await inspect(sources);
  const { issuer, audience, algorithm, keys: directory, lifetime } = configuration.tokens;
  if (directory === undefined) {
    const message = "tokens.keys is not set: no running proxy would know the key";
    throw new ConfigError([{ file: sources.file, message }]);
  }
  const clock = systemClock;
  const keys = await loadSigningKeys({ algorithm, directory, log: SILENT_LOG });
  if (keys.signing === undefined) throw new Error(`no key in ${directory} signs at this time`);
  const lifetimeMs = asked ?? lifetime;
  const issuing = { issuer, audience, lifetimeMs, keys, clock, observer: SILENT_OBSERVER };
  const token = await createTokenIssuer(issuing).issue({ name: subject, groups });
  const { accepted, reason } = await inspectToken({ configuration, keys, clock }, token);
  if (!accepted) throw new Error(`such a token would not be accepted here: ${reason}`);
  terminal.out(`${token}\n`);
  const told = groups.length === 0 ? "without groups" : `of ${groups.join(", ")}`;
  const note = `a token for ${subject} ${told}, for ${formatDuration(lifetimeMs)}; nothing revokes it`;
  terminal.err(`${printable(note)}\n`);
  return EXIT.done;
}

function lifetimeOf(given: string): number {
  const milliseconds = parseDuration(given);
  const sound = milliseconds !== undefined && milliseconds % 1000 === 0;
  if (!sound || milliseconds < 1000 || milliseconds > LONGEST_MS) {
    throw new UsageError("--lifetime wants whole seconds up to a year, such as 15m or 1h30m");
  }
  return milliseconds;
}
