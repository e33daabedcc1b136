import { rm } from "node:fs/promises";
import { systemClock } from "../../lib/clock.ts";
import { type KeyInState, keyStates } from "../../tokens/keys/key-states.ts";
import { parseFlags } from "../arguments.ts";
import { EXIT, type Terminal } from "../command.ts";
import { LOCATION_FLAGS, keyLocation, timeText } from "./location.ts";

/** Removes the files of expired keys, or those of one key. */
export async function retire(args: readonly string[], terminal: Terminal): Promise<number> {
  const flags = parseFlags(args, {
    ...LOCATION_FLAGS,
    kid: { type: "string" },
    force: { type: "boolean" },
  });
  const { directory, algorithm } = keyLocation(flags, terminal);
  const { keys } = await keyStates(directory, algorithm, systemClock.now());
  const leaving =
    flags.kid === undefined
      ? keys.filter(({ state }) => state === "expired")
      : named(keys, flags.kid, flags.force === true);
  if (leaving.length === 0) terminal.err("No key has expired yet.\n");
  for (const { file, kid } of leaving) {
    await rm(file);
    terminal.out(`${file}\n  ${kid} is retired\n`);
  }
  return EXIT.done;
}

/** @throws Error if there is no such key, if it still verifies and `force` is off, or if no other key could sign. */
function named(keys: readonly KeyInState[], kid: string, force: boolean): KeyInState[] {
  const leaving = keys.filter((key) => key.kid === kid);
  const living = leaving.find(({ state }) => state !== "expired");
  if (leaving.length === 0) throw new Error(`there is no key ${kid}`);
  if (living === undefined) return leaving;
  if (!force) {
    const until = timeText(living.verifiesUntil);
    throw new Error(`${kid} is ${living.state} (until: ${until}); --force ends its tokens now`);
  }
  const nowMs = systemClock.now();
  const another = keys.some(
    (key) => key.kid !== kid && key.canSign && key.state !== "expired" && key.signsFrom <= nowMs,
  );
  if (living.state === "signing" && !another) {
    throw new Error(`no other key signs at this time; use keys generate --force first`);
  }
  return leaving;
}
