import { expect, it, onTestFinished } from "vitest";
import { ReloadStates } from "../../src/app/reload-states.ts";
import { startTraffic } from "../../src/app/traffic.ts";
import { loadConfiguration } from "../../src/config/load.ts";
import { GateError } from "../../src/core/errors.ts";
import { createMetrics } from "../../src/observe/metrics.ts";
import { createObserver } from "../../src/observe/observer.ts";
import { HeldKeys } from "../../src/tokens/own-keys.ts";
import { passingKey } from "../../src/tokens/signing-keys.ts";
import { keptLines } from "../observe/kept-lines.ts";
import { signingPair, startKeySetServer } from "../support/foreign-keys.ts";
import { recordedLog } from "../support/recorded-log.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { setClock } from "../tokens/fixture.ts";

async function start(jwksUrl: string) {
  await using place = await temporaryDirectory();
  const trusted = {
    ...{ issuer: "https://a.example", audience: "a", algorithms: ["ES256"] },
    jwks: { url: jwksUrl },
  };
  const text = JSON.stringify({
    server: { listen: "127.0.0.1:0", tls: "off" },
    tokens: { trusted: [trusted] },
    upstreams: { app: { targets: ["http://127.0.0.1:1"] } },
  });
  const file = await place.write("config.yaml", text);
  const { configuration } = loadConfiguration({ file, env: {}, overrides: {} });
  const [clock, log, { sink }] = [setClock(), recordedLog(), keptLines()];
  const metrics = createMetrics({ routes: [], upstreams: ["app"], version: "0.0.0", clock });
  const traffic = await startTraffic({
    ...{ configuration, version: "0.0.0", tls: undefined, port: 0, shared: false, clock, log },
    keys: new HeldKeys(await passingKey({ algorithm: "ES256", log, clock }), clock),
    reloads: new ReloadStates(() => undefined),
    logins: { logIn: () => Promise.reject(new GateError("internal")) },
    observer: createObserver({ metrics, sink, clock, level: "error" }),
    nextId: () => 1,
  });
  onTestFinished(() => traffic.abandon());
  const loaded = (): boolean =>
    log.lines.some(({ message }) => message === "Keys of a trusted issuer were loaded");
  return { clock, loaded, reload: () => traffic.prepare({ configuration, tls: undefined }) };
}

it("a reload asks for the key sets of trusted issuers, but those that were asked a moment ago", async () => {
  const { jwk } = signingPair("foreign");
  await using provider = await startKeySetServer(() => [jwk]);
  const { clock, loaded, reload } = await start(provider.url);
  await until(loaded);
  clock.advance(29_999);
  await (await reload()).commit();
  clock.advance(1);
  (await reload()).drop();
  expect(provider.asked()).toBe(1);
  await (await reload()).commit();
  await until(() => provider.asked() === 2);
});
