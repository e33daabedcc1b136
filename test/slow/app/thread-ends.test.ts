import { rename } from "node:fs/promises";
import type { Worker } from "node:worker_threads";
import { expect, it, onTestFinished } from "vitest";
import { openLedger } from "../../../src/app/client-warnings.ts";
import { ReloadStates } from "../../../src/app/reload/reload-states.ts";
import { startThreads } from "../../../src/app/threads/threads.ts";
import { gateFilesOf } from "../../../src/app/from-files.ts";
import { takeSnapshot } from "../../../src/config/snapshot.ts";
import { GateError } from "../../../src/core/request/errors.ts";
import type { LoginAnswer, LoginService } from "../../../src/core/login.ts";
import { systemClock as clock } from "../../../src/lib/clock.ts";
import { allocateCounters } from "../../../src/lib/async/shared-counts.ts";
import { createMetrics } from "../../../src/observe/metrics/metrics.ts";
import { RecentLog } from "../../../src/observe/recent/recent-log.ts";
import { createObserver } from "../../../src/observe/log/access-log.ts";
import { countInFlight } from "../../../src/policy/concurrency/concurrency-limiter.ts";
import { OwnKeys } from "../../../src/tokens/keys/own-keys.ts";
import { ephemeralKey } from "../../../src/tokens/keys/watched-keys.ts";
import { RevocationList } from "../../../src/tokens/revocation/revocation-list.ts";
import { keptLines } from "../../observe/kept-lines.ts";
import { ask } from "../../support/ask.ts";
import { type HoldingBackend, startHoldingBackend } from "../../support/holding-backend.ts";
import { NO_SIGN_INS } from "../../support/no-sign-ins.ts";
import { recordedLog } from "../../support/recorded-log.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

/** A thread loads all of Sallyport, and other tests run in parallel. */
const LONG_MS = 20_000;

/** Traffic threads that are terminated, as when they run out of memory: without notice, whatever is running. */

const REFUSING: LoginService = { logIn: () => Promise.reject(new GateError("internal")) };

async function start(backend: HoldingBackend, count: number, { port = 0, logins = REFUSING } = {}) {
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
      login: { hashing: { concurrency: 1, queue: 1 } },
      tokens: {
        trusted: [
          {
            issuer: "https://a.example",
            audience: "a",
            algorithms: ["ES256"],
            jwks: { file: "keys.json" },
          },
        ],
      },
      routes: [{ name: "open", path: "/", auth: "none", upstream: "app" }],
      upstreams: { app: { targets: [backend.url] } },
    }),
  );
  const { configuration, files } = await takeSnapshot({ file, env: {}, overrides: {} });
  const gateFiles = gateFilesOf(configuration, files, { rows: [], complete: true });
  const log = recordedLog();
  const { sink } = keptLines();
  const metrics = createMetrics({ routes: ["open"], upstreams: ["app"], version: "0.0.0", clock });
  const keys = new OwnKeys(await ephemeralKey({ algorithm: "ES256", log, clock }), clock);
  const states: boolean[] = [];
  const recent = new RecentLog(clock.now);
  const observer = createObserver({ metrics, recent, sink, clock, level: "error", access: "all" });
  const memory = allocateCounters(count + 1);
  const threads = await startThreads(
    {
      configuration,
      files: gateFiles,
      version: "0.0.0",
      keys,
      assertionKeys: new OwnKeys([], clock),
      tls: undefined,
      port,
      shared: true,
      inFlight: countInFlight(),
      clock,
      log,
      reloads: new ReloadStates(clock.now, (problems) => void states.push(problems.length === 0)),
      logins,
      signIns: NO_SIGN_INS,
      revocations: new RevocationList(),
      publish: () => Promise.resolve(false),
      observer,
      buffered: openLedger({ configuration, observer, clock, log, shared: { memory, row: 0 } }),
      nextId: () => 1,
    },
    count,
    sink,
  );
  let drained = false;
  onTestFinished(async () => {
    // A drain has already closed everything.
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
  return {
    threads,
    drain,
    workers,
    configuration,
    gateFiles,
    metrics,
    states,
    failures,
    replaceKeys,
    serves,
  };
}

it("a drain waits for requests in the replacement of a dead thread", async () => {
  await using backend = await startHoldingBackend();
  const { threads, drain, workers, serves } = await start(backend, 1);
  await workers[0]?.terminate();
  await until(serves, LONG_MS);
  const answer = ask(threads, "/hold/one");
  await until(() => backend.held().length === 1);
  let ended = false;
  const drained = drain().finally(() => (ended = true));
  // New connections are refused, so the drain has started.
  await until(async () => !(await serves()));
  expect(ended).toBe(false);
  backend.release("/hold/one");
  expect((await answer).status).toBe(200);
  expect(await drained).toBe(true);
}, 60_000);

it("a thread that cannot start is restarted after a second, and blocks nothing meanwhile", async () => {
  await using backend = await startHoldingBackend();
  const { threads, workers, states, failures, replaceKeys, serves, ...rest } = await start(
    backend,
    1,
  );
  const { configuration, gateFiles, metrics } = rest;
  await replaceKeys("{");
  await until(() => states.at(-1) === false);
  await workers[0]?.terminate();
  await until(() => failures() === 1, LONG_MS);
  const failed = performance.now();
  expect(await threads.metricsText(metrics)).toContain("sallyport_build_info");
  const change = await threads.prepare({ configuration, files: gateFiles, tls: undefined });
  await change.commit();
  await until(() => failures() > 1, LONG_MS);
  expect(performance.now() - failed).toBeGreaterThan(900);
  await replaceKeys('{"keys":[]}');
  await until(serves, LONG_MS);
}, 60_000);

it("threads that cannot bind their address report it", async () => {
  await using backend = await startHoldingBackend();
  const port = Number(new URL(backend.url).port);
  await expect(start(backend, 2, { port })).rejects.toMatchObject({ code: "EADDRINUSE" });
}, 60_000);

it("a bounded number of logins waits for a main thread that does not answer", async () => {
  await using backend = await startHoldingBackend();
  const answer = Promise.withResolvers<LoginAnswer>();
  const logins: LoginService = { logIn: () => answer.promise };
  const { threads } = await start(backend, 1, { logins });
  let refused = 0;
  const body = JSON.stringify({ username: "alice", password: "apple" });
  const headers = { "content-type": "application/json" };
  const asked = Array.from({ length: 300 }, async () => {
    const { status } = await ask(threads, "/api/authenticate", { method: "POST", headers, body });
    if (status === 503) refused += 1;
    return status;
  });
  // One is being hashed, three wait in the queue, and 256 are in transit.
  await until(() => refused === 40, LONG_MS);
  answer.resolve({ token: "a.b.c" });
  const statuses = await Promise.all(asked);
  expect(statuses.filter((status) => status === 200)).toHaveLength(260);
}, 60_000);
