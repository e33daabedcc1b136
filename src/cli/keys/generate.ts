import { mkdir } from "node:fs/promises";
import { systemClock } from "../../lib/clock.ts";
import { keyStates } from "../../tokens/keys/key-states.ts";
import { parseFlags } from "../arguments.ts";
import { EXIT, type Terminal } from "../command.ts";
import { makeKeyFile } from "./make-key-file.ts";
import { LOCATION_FLAGS, keyLocation } from "./location.ts";

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
  const { directory, algorithm: wanted = "ES256" } = keyLocation(flags, terminal);
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const nowMs = systemClock.now();
  const { keys } = await keyStates(directory, wanted, nowMs);
  if (flags.force !== true && keys.some(({ canSign, state }) => canSign && state !== "expired")) {
    throw new Error(
      `there is a key for ${wanted} in ${directory}; use keys rotate, or --force to sign with a new one at once`,
    );
  }
  const { kid, file } = await makeKeyFile({
    ...{ directory, algorithm: wanted, name: flags.name },
    ...{ nowMs, newestMs: keys[0]?.madeAt ?? 0, signsFromMs: nowMs },
  });
  terminal.out(`${file}\n  ${kid} signs from now on\n`);
  return EXIT.done;
}
