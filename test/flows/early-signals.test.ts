import { pbkdf2Sync } from "node:crypto";
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

it("a thread that takes its time to end does not turn an orderly stop into SIGKILL", async () => {
  // Six tenths of a second in one call, which nothing can interrupt.
  const began = performance.now();
  pbkdf2Sync("", "", 100_000, 64, "sha512");
  const iterations = Math.round((100_000 * 600) / (performance.now() - began));
  const slow = `require("node:crypto").pbkdf2Sync("", "", ${iterations}, 64, "sha512")`;
  const preload = `
    import { isMainThread, Worker } from "node:worker_threads";
    const start = () => new Worker(${JSON.stringify(slow)}, { eval: true });
    // Before it listens itself, Sallyport removes all listeners of signals.
    const looking = isMainThread && setInterval(() => {
      if (process.listenerCount("SIGTERM") === 0) return;
      clearInterval(looking);
      process.once("SIGTERM", start);
    }, 5);
  `;
  await using gate = await startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    // The thread runs by the time the drain is over.
    config: { server: { drain: { delay: "250ms", timeout: "5s" } } },
    env: { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(preload)}` },
  });
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
