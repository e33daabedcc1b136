import { until } from "./until.ts";

/** The documented limit for a change to take effect, in milliseconds. */
const SOON_MS = 2_000;
const ROUNDS = 5;

/**
 * Returns whether a change takes effect within two seconds. Other load on the machine can spoil a round but not improve
 * it, so one good round of five is enough. A round starts once the previous change is in effect. If only the
 * five-second timer detects the change, every round takes five seconds.
 *
 * @param undo reverts the change of a spoiled round, and resolves when that is in effect.
 */
export async function isSoonInForce(
  change: () => Promise<unknown>,
  inForce: () => boolean | Promise<boolean>,
  undo: () => Promise<unknown>,
): Promise<boolean> {
  for (let round = 1; ; round += 1) {
    const began = performance.now();
    await change();
    await until(inForce, 3 * SOON_MS + 5_000);
    if (performance.now() - began < SOON_MS) return true;
    if (round === ROUNDS) return false;
    await undo();
  }
}
