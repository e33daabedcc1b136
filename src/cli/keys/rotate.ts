import { systemClock } from "../../lib/clock.ts";
import { keyStates } from "../../tokens/key-states.ts";
import { endings } from "../../tokens/rotation.ts";
import { writeEnd } from "../../tokens/written-key.ts";
import { durationFlag, parseFlags } from "../arguments.ts";
import { EXIT, type Terminal, UsageError } from "../command.ts";
import { makeKeyFile } from "./make-key-file.ts";
import { PLACE_FLAGS, placeOf, timeText } from "./place.ts";

/**
 * Makes the next key: published now, signing later. Then gives the older ones their end. A rotation that breaks off
 * between the two leaves keys without an end, which harms nobody.
 */
export async function rotate(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...PLACE_FLAGS,
    name: { type: "string" },
    "publish-for": { type: "string" },
    lifetime: { type: "string" },
  });
  const place = placeOf(flags, terminal);
  const publishForMs = durationFlag("publish-for", flags["publish-for"] ?? "10m");
  const lifetimeMs = lifetimeOf(flags.lifetime, place.lifetimeMs);
  const nowMs = systemClock.now();
  const { algorithm, keys } = await keyStates(place.directory, place.algorithm, nowMs);
  if (!keys.some(({ canSign, state }) => canSign && state !== "over")) {
    throw new Error(`no key in ${place.directory} can sign ${algorithm}; use keys generate`);
  }
  const signsFromMs = Math.ceil((nowMs + publishForMs) / 1000) * 1000;
  const made = await makeKeyFile({
    ...{ directory: place.directory, algorithm, name: flags.name },
    ...{ nowMs, newestMs: keys[0]?.madeAt ?? 0, signsFromMs },
  });
  terminal.out(`${made.file}\n  ${made.kid} signs from ${timeText(signsFromMs)}\n`);
  for (const { found, exp } of endings(keys, { nowMs, signsFromMs, lifetimeMs })) {
    const file = await writeEnd(found, exp);
    terminal.out(`${file}\n  verifies until ${timeText(exp * 1000)}\n`);
  }
  return EXIT.done;
}

/** A lifetime that is guessed too short would end tokens early, so it is never guessed. */
function lifetimeOf(flag: string | undefined, configured: number | undefined): number {
  if (flag === undefined) {
    if (configured !== undefined) return configured;
    throw new UsageError("say how long tokens live: --lifetime, or --config to read it there");
  }
  const lifetime = durationFlag("lifetime", flag);
  if (configured !== undefined && lifetime < configured) {
    throw new UsageError("--lifetime is shorter than tokens.lifetime: tokens would end early");
  }
  return lifetime;
}
