import { expect, it, onTestFinished } from "vitest";
import { ReloadStates } from "../../src/app/reload/reload-states.ts";
import { openLedger } from "../../src/app/client-warnings.ts";
import { NO_SIGN_INS } from "../support/no-sign-ins.ts";
import { startTraffic } from "../../src/app/traffic.ts";
import { gateFilesOf } from "../../src/app/from-files.ts";
import { takeSnapshot } from "../../src/config/snapshot.ts";
import { GateError } from "../../src/core/request/errors.ts";
import { createMetrics } from "../../src/observe/metrics/metrics.ts";
import { RecentLog } from "../../src/observe/recent/recent-log.ts";
import { createObserver } from "../../src/observe/log/access-log.ts";
import { countInFlight } from "../../src/policy/concurrency/concurrency-limiter.ts";
import { OwnKeys } from "../../src/tokens/keys/own-keys.ts";
import { ephemeralKey } from "../../src/tokens/keys/watched-keys.ts";
import { RevocationList } from "../../src/tokens/revocation/revocation-list.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { signingPair, startKeySetServer } from "../support/foreign-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { setClock } from "../tokens/fixture.ts";

async function start(jwksUrl: string) {
  await using place = await temporaryDirectory();
  const trusted = {
    issuer: "https://a.example",
    audience: "a",
    algorithms: ["ES256"],
    jwks: { url: jwksUrl },
  };
  const text = JSON.stringify({
    server: { listen: "127.0.0.1:0", tls: "off" },
    tokens: { trusted: [trusted] },
    upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
  });
  const file = await place.write("config.yaml", text);
  const { configuration, files } = await takeSnapshot({ file, env: {}, overrides: {} });
  const gateFiles = gateFilesOf(configuration, files, { rows: [], complete: true });
  const [clock, log, { sink }] = [setClock(), recordedLog(), keptLines()];
  const metrics = createMetrics({ routes: [], upstreams: ["app"], version: "0.0.0", clock });
  const recent = new RecentLog(clock.now);
  const observer = createObserver({ metrics, recent, sink, clock, level: "error", access: "all" });
  const traffic = await startTraffic({
    buffered: openLedger({ configuration, observer, clock, log }),
    configuration,
    files: gateFiles,
    version: "0.0.0",
    tls: undefined,
    port: 0,
    shared: false,
    clock,
    log,
    keys: new OwnKeys(await ephemeralKey({ algorithm: "ES256", log, clock }), clock),
    assertionKeys: new OwnKeys([], clock),
    reloads: new ReloadStates(clock.now, () => undefined),
    logins: { logIn: () => Promise.reject(new GateError("internal")) },
    signIns: NO_SIGN_INS,
    revocations: new RevocationList(),
    publish: () => Promise.resolve(false),
    observer,
    nextId: () => 1,
    inFlight: countInFlight(),
  });
  onTestFinished(() => traffic.abandon());
  const loaded = (): boolean =>
    log.lines.some(({ message }) => message === "the keys of a trusted issuer were loaded");
  return {
    clock,
    loaded,
    reload: () => traffic.prepare({ configuration, files: gateFiles, tls: undefined }),
  };
}

it("a reload fetches the key sets of trusted issuers again, except those fetched a moment ago", async () => {
  const { jwk } = signingPair("foreign");
  await using provider = await startKeySetServer(() => [jwk]);
  const { clock, loaded, reload } = await start(provider.url);
  await until(loaded);
  (await reload()).rollback();
  expect(provider.asked()).toBe(1);
  await (await reload()).commit();
  await until(() => provider.asked() === 2);
  clock.advance(4_999);
  await (await reload()).commit();
  clock.advance(1);
  (await reload()).rollback();
  expect(provider.asked()).toBe(2);
  await (await reload()).commit();
  await until(() => provider.asked() === 3);
});
