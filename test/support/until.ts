import { setTimeout as delay } from "node:timers/promises";

/** How often a condition is checked: at first every 10 ms, and less often the longer it takes. */
const pauseAfter = (waitedMs: number): number => Math.min(10 + waitedMs / 10, 50);

/** Waits until the condition holds. Throws after `timeoutMs` milliseconds. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 10_000,
): Promise<void> {
  const began = performance.now();
  while (!(await condition())) {
    const waitedMs = performance.now() - began;
    if (waitedMs > timeoutMs) {
      throw new Error(`nothing happened within ${timeoutMs} ms`);
    }
    await delay(pauseAfter(waitedMs));
  }
}
