import { mkdir } from "node:fs/promises";
import { systemClock } from "../../lib/clock.ts";
import { expiriesAfterRotation, type KeyInState, keyStates } from "../../tokens/keys/key-states.ts";
import { writeExpiry } from "../../tokens/keys/written-key.ts";
import { durationFlag, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";
import { LOCATION_FLAGS, keyLocation, timeText } from "./location.ts";
import { makeKeyFile } from "./make-key-file.ts";

/**
 * Generates a key that signs at once. Without `--force`, refuses if another key can sign: replicas that do not have the
 * new key yet would refuse its tokens.
 */
export async function generate(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...LOCATION_FLAGS,
    name: { type: "string" },
    force: { type: "boolean" },
  });
  const { directory, algorithm = "ES256" } = keyLocation(flags, terminal);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const nowMs = systemClock.now();
  const { keys } = await keyStates(directory, algorithm, nowMs);
  if (flags.force !== true && keys.some(signsOrWill)) {
    throw new Error(
      `there is a key for ${algorithm} in ${directory}; use keys rotate, or --force to sign with a new one at once`,
    );
  }
  const { kid, file } = await makeKeyFile({
    directory,
    algorithm,
    name: flags.name,
    nowMs,
    newestMs: keys[0]?.madeAt,
    signsFromMs: nowMs,
  });
  terminal.out(`${file}\n  ${kid} signs from now on\n`);
  return EXIT.done;
}

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
  const { directory } = location;
  const publishForMs = durationFlag("publish-for", flags["publish-for"] ?? "10m");
  const lifetimeMs = lifetimeOf(flags.lifetime, location.lifetimeMs);
  const nowMs = systemClock.now();
  const { algorithm, keys } = await keyStates(directory, location.algorithm, nowMs);
  if (!keys.some(signsOrWill)) {
    throw new Error(`no key in ${directory} can sign ${algorithm}; use keys generate`);
  }
  const signsFromMs = Math.ceil((nowMs + publishForMs) / 1000) * 1000;
  const made = await makeKeyFile({
    directory,
    algorithm,
    name: flags.name,
    nowMs,
    newestMs: keys[0]?.madeAt,
    signsFromMs,
  });
  terminal.out(`${made.file}\n  ${made.kid} signs from ${timeText(signsFromMs)}\n`);
  for (const { found, exp } of expiriesAfterRotation(keys, { nowMs, signsFromMs, lifetimeMs })) {
    const file = await writeExpiry(found, exp);
    terminal.out(`${file}\n  verifies until ${timeText(exp * 1000)}\n`);
  }
  return EXIT.done;
}

function signsOrWill({ canSign, state }: KeyInState): boolean {
  return canSign && state !== "expired";
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
