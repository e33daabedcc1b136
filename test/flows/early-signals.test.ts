import { expect, it } from "vitest";
import { startSallyport } from "../support/sallyport.ts";

/**
 * Sends a signal to its own process as soon as Sallyport has read its environment. That is the first thing it does,
 * long before it listens.
 */
const sendsEarly = (signal: NodeJS.Signals): string => `
  import { isMainThread } from "node:worker_threads";
  const looking = isMainThread && setInterval(() => {
    if (process.env.DEBUG !== undefined) return;
    clearInterval(looking);
    process.stderr.write("sent\\n");
    process.kill(process.pid, "${signal}");
  }, 1);
`;

const start = (signal: NodeJS.Signals, workers: number) =>
  startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    config: { server: { workers } },
    env: {
      DEBUG: "x",
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(sendsEarly(signal))}`,
    },
  });

it("SIGHUP during startup does not end the process", async () => {
  await using gate = await start("SIGHUP", 1);
  expect(gate.stderr()).toContain("sent");
  expect(await gate.stop()).toBe(0);
});

it.each([1, 2])(
  "SIGTERM during startup drains what has started, with %d workers",
  async (workers) => {
    await using gate = await start("SIGTERM", workers);
    expect(gate.stderr()).toContain("sent");
    expect(await gate.exit).toBe(0);
    expect(gate.log().map(({ msg }) => msg)).toEqual(
      expect.arrayContaining(["listening", "asked to stop", "draining", "stopped"]),
    );
  },
);
