import { rename } from "node:fs/promises";
import type { Worker } from "node:worker_threads";
import { expect, it, onTestFinished } from "vitest";
import { ReloadStates } from "../../src/app/reload-states.ts";
import { startThreads } from "../../src/app/threads.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { GateError } from "../../src/core/errors.ts";
import { systemClock as clock } from "../../src/lib/clock.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { createObserver } from "../../src/observe/observer.ts";
import { HeldKeys } from "../../src/tokens/own-keys.ts";
import { passingKey } from "../../src/tokens/signing-keys.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { ask } from "../support/ask.ts";
import { type HoldingBackend, startHoldingBackend } from "../support/holding-backend.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

/** A thread loads all of Sallyport, and other tests run beside this one. */
const LONG_MS = 20_000;

/** Traffic threads end like this when they run out of memory: without a word, whatever runs. */

async function start(backend: HoldingBackend, count: number, port = 0) {
  const workers: Worker[] = [];
  const remember = (worker: Worker): void => void workers.push(worker);
  process.on("worker", remember);
  onTestFinished(() => void process.off("worker", remember));
  const place = await temporaryDirectory();
  onTestFinished(() => place.close());
  await place.write("keys.json", '{"keys":[]}');
  const file = await place.write(
    "config.yaml",
    JSON.stringify({
      server: { listen: "127.0.0.1:0", tls: "off", workers: count, drain: { delay: "0s" } },
      admin: "off",
      tokens: {
        trusted: [
          {
            ...{ issuer: "https://a.example", audience: "a", algorithms: ["ES256"] },
            jwks: { file: "keys.json" },
          },
        ],
      },
      routes: [{ name: "open", path: "/", auth: "none", upstream: "app" }],
      upstreams: { app: { targets: [backend.url] } },
    }),
  );
  const { configuration } = loadConfiguration({ file, env: {}, overrides: {} });
  const log = recordedLog();
  const { sink } = keptLines();
  const metrics = createMetrics({ routes: ["open"], upstreams: ["app"], version: "0.0.0", clock });
  const keys = new HeldKeys(await passingKey({ algorithm: "ES256", log, clock }), clock);
  const states: boolean[] = [];
  const threads = await startThreads(
    {
      ...{
        configuration,
        version: "0.0.0",
        keys,
        tls: undefined,
        port,
        shared: true,
        clock,
        log,
      },
      reloads: new ReloadStates((successful) => void states.push(successful)),
      logins: { logIn: () => Promise.reject(new GateError("internal")) },
      observer: createObserver({ metrics, sink, clock, level: "error" }),
      nextId: () => 1,
    },
    count,
    sink,
  );
  let drained = false;
  onTestFinished(async () => {
    // A drain has closed everything already.
    if (!drained) await threads.abandon();
  });
  const replaceKeys = async (text: string): Promise<void> =>
    rename(await place.write("keys.new", text), `${place.path}/keys.json`);
  const serves = (): Promise<boolean> =>
    ask(threads, "/x").then(
      ({ status }) => status === 200,
      () => false,
    );
  const failures = (): number =>
    log.lines.filter(({ message }) => message === "a traffic thread failed").length;
  const drain = (): Promise<boolean> => {
    drained = true;
    return threads.drain();
  };
  return { threads, drain, workers, configuration, metrics, states, failures, replaceKeys, serves };
}

it("a drain waits for what runs in the thread that took the place of one that died", async () => {
  await using backend = await startHoldingBackend();
  const { threads, drain, workers, serves } = await start(backend, 1);
  await workers[0]?.terminate();
  await until(serves, LONG_MS);
  const answer = ask(threads, "/hold/one");
  await until(() => backend.held().length === 1);
  let ended = false;
  const drained = drain().finally(() => (ended = true));
  // No more connections: now it drains.
  await until(async () => !(await serves()));
  expect(ended).toBe(false);
  backend.release("/hold/one");
  expect((await answer).status).toBe(200);
  expect(await drained).toBe(true);
}, 60_000);

it("a thread that cannot start is started again after a second, and nobody waits for it", async () => {
  await using backend = await startHoldingBackend();
  const { threads, workers, states, failures, replaceKeys, serves, ...rest } = await start(
    backend,
    1,
  );
  const { configuration, metrics } = rest;
  await replaceKeys("{");
  await until(() => states.at(-1) === false);
  await workers[0]?.terminate();
  await until(() => failures() === 1, LONG_MS);
  const failed = performance.now();
  expect(await threads.metricsText(metrics)).toContain("sallyport_build_info");
  const change = await threads.prepare({ configuration, tls: undefined });
  await change.commit();
  await until(() => failures() > 1, LONG_MS);
  expect(performance.now() - failed).toBeGreaterThan(900);
  await replaceKeys('{"keys":[]}');
  await until(serves, LONG_MS);
}, 60_000);

it("threads that cannot have their address say so", async () => {
  await using backend = await startHoldingBackend();
  const taken = Number(new URL(backend.url).port);
  await expect(start(backend, 2, taken)).rejects.toMatchObject({ code: "EADDRINUSE" });
}, 60_000);
