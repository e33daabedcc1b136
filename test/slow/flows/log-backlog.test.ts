/**
 * With several workers the main thread writes the log. While it hangs, the pending lines of the workers are bounded in
 * bytes, and every line that does not fit is counted.
 */
import { open } from "node:fs/promises";
import { Agent } from "node:https";
import { join } from "node:path";
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { misbehaveInMain, MISBEHAVING } from "../../support/misbehaving.ts";
import { namedPipe } from "../../support/named-pipe.ts";
import { resourcesOf } from "../../support/proxy-resources.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
/** The documented limit: 8 MiB of lines wait for the main thread. */
const BOUND = 8 * MIB;
/** Logged for each request, so that few lines amount to many bytes. */
const PATH = `/orders/${"x".repeat(15_000)}`;
/** Lines of three times as many bytes as may wait. */
const REQUESTS = Math.ceil((3 * BOUND) / PATH.length);

it("lines that wait for a hung main thread are bounded, and dropped ones are counted", async () => {
  await using backend = await startEchoBackend();
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { workers: 2 } },
    env: MISBEHAVING,
  });
  const dropped = async (): Promise<number> =>
    (await scrape(gate)).value("sallyport_log_lines_dropped_total") ?? 0;
  expect(await dropped()).toBe(0);

  const pipe = await namedPipe(join(gate.directory, "pipe"));
  await misbehaveInMain(gate, `open ${pipe}`);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });
  const askAll = async (): Promise<void> => {
    const asked = Array.from({ length: REQUESTS }, () => ask(gate, PATH, { agent }));
    const statuses = (await Promise.all(asked)).map(({ status }) => status);
    expect(new Set(statuses)).toEqual(new Set([401]));
  };
  // The first round also warms the workers up.
  await askAll();
  const { residentBytes } = await resourcesOf(gate);
  const before = await residentBytes();
  await askAll();
  expect((await residentBytes()) - before).toBeLessThan(BOUND);
  agent.destroy();

  // The main thread continues once the pipe is opened for writing.
  await (await open(pipe, "w")).close();
  const lines = (): number => gate.log().filter(({ path }) => path === PATH).length;
  await until(async () => lines() + (await dropped()) === 2 * REQUESTS, 20_000);
  expect(lines()).toBeGreaterThan(0);
  expect(lines() * PATH.length).toBeLessThan(BOUND);
  // Warnings are seconds apart, so the last lines may be told a little later.
  const told = (): number =>
    gate
      .log()
      .filter(({ msg }) => msg === "log lines were dropped")
      .reduce((sum, line) => sum + Number(line["dropped"]), 0);
  await until(async () => told() === (await dropped()), 20_000);
  expect(await gate.stop()).toBe(0);
}, 120_000);
