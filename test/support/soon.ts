import { until } from "./until.ts";

/** What is promised for a change, in milliseconds. */
const SOON_MS = 2_000;
const ROUNDS = 5;

/**
 * Whether a change is in force within two seconds. What else runs on the machine can spoil a round but not improve one, so
 * one good round of five is enough. A round begins when the one before was in force; where only the timer of five seconds
 * finds the change, every round takes those five.
 *
 * @param undo takes back what a spoiled round changed, and resolves when that is in force.
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
