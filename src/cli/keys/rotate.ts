import { systemClock } from "../../lib/clock.ts";
import { keyStates } from "../../tokens/keys/key-states.ts";
import { expiriesAfterRotation } from "../../tokens/keys/key-states.ts";
import { writeExpiry } from "../../tokens/keys/written-key.ts";
import { durationFlag, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";
import { makeKeyFile } from "./make-key-file.ts";
import { LOCATION_FLAGS, keyLocation, timeText } from "./location.ts";

/**
 * Generates the next key, which is published now and signs later, and then sets the expiry of the older keys. If it
 * fails between the two steps, the older keys never expire, which is harmless.
 */
export async function rotate(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...LOCATION_FLAGS,
    name: { type: "string" },
    "publish-for": { type: "string" },
    lifetime: { type: "string" },
  });
  const location = keyLocation(flags, terminal);
  const publishForMs = durationFlag("publish-for", flags["publish-for"] ?? "10m");
  const lifetimeMs = lifetimeOf(flags.lifetime, location.lifetimeMs);
  const nowMs = systemClock.now();
  const { algorithm, keys } = await keyStates(location.directory, location.algorithm, nowMs);
  if (!keys.some(({ canSign, state }) => canSign && state !== "expired")) {
    throw new Error(`no key in ${location.directory} can sign ${algorithm}; use keys generate`);
  }
  const signsFromMs = Math.ceil((nowMs + publishForMs) / 1000) * 1000;
  const made = await makeKeyFile({
    ...{ directory: location.directory, algorithm, name: flags.name },
    ...{ nowMs, newestMs: keys[0]?.madeAt ?? 0, signsFromMs },
  });
  terminal.out(`${made.file}\n  ${made.kid} signs from ${timeText(signsFromMs)}\n`);
  for (const { found, exp } of expiriesAfterRotation(keys, { nowMs, signsFromMs, lifetimeMs })) {
    const file = await writeExpiry(found, exp);
    terminal.out(`${file}\n  verifies until ${timeText(exp * 1000)}\n`);
  }
  return EXIT.done;
}

/** Never guesses a lifetime: one that is too short would end tokens early. */
function lifetimeOf(flag: string | undefined, configured: number | undefined): number {
  if (flag === undefined) {
    if (configured !== undefined) return configured;
    throw new UsageError(
      "set the lifetime of tokens with --lifetime, or name a configuration with --config",
    );
  }
  const lifetime = durationFlag("lifetime", flag);
  if (configured !== undefined && lifetime < configured) {
    throw new UsageError("--lifetime is shorter than tokens.lifetime: tokens would end early");
  }
  return lifetime;
}
