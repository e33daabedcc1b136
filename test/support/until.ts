import { setTimeout as delay } from "node:timers/promises";

/** Waits until the condition holds. Throws after `timeoutMs` milliseconds. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  timeoutMs = 10_000,
): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  while (!(await condition())) {
    if (performance.now() > deadline) {
      throw new Error(`nothing happened within ${timeoutMs} ms`);
    }
    await delay(10);
  }
}
