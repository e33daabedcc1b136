import { expect, it } from "vitest";
import { startSallyport } from "../support/sallyport.ts";

/**
 * Sends SIGHUP to its own process as soon as Sallyport has read its environment. That is the first thing it does,
 * long before it listens.
 */
const HANGS_UP_EARLY = `
  const looking = setInterval(() => {
    if (process.env.DEBUG !== undefined) return;
    clearInterval(looking);
    process.stderr.write("hung up\\n");
    process.kill(process.pid, "SIGHUP");
  }, 1);
`;

it("SIGHUP during startup does not end the process", async () => {
  const preload = `data:text/javascript,${encodeURIComponent(HANGS_UP_EARLY)}`;
  await using gate = await startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    env: { DEBUG: "x", NODE_OPTIONS: `--import=${preload}` },
  });
  expect(gate.stderr()).toContain("hung up");
  expect(await gate.stop()).toBe(0);
});
