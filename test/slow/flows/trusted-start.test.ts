import { expect, it, onTestFinished, vi } from "vitest";
import { ask } from "../../support/ask.ts";
import { editConfiguration } from "../../support/edits.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { signingPair, signToken, startKeySetServer } from "../../support/foreign-keys.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

vi.setConfig({ testTimeout: 60_000 });
const ISSUER = "https://idp.example.com";
const one = signingPair("one");
const two = signingPair("two");

/** Starts a proxy that trusts an identity provider with a changeable key set. */
async function start(options: { workers?: number; keys?: readonly object[] } = {}) {
  const idp: { keys: readonly object[] | undefined } = { keys: options.keys };
  const backend = await startEchoBackend();
  const provider = await startKeySetServer(() => idp.keys);
  const trusted = { issuer: ISSUER, audience: "orders", algorithms: ["ES256"] };
  const gate = await startSallyport({
    target: backend.url,
    config: {
      server: { workers: options.workers ?? 1 },
      tokens: { trusted: [{ ...trusted, jwks: { url: provider.url } }] },
    },
  });
  onTestFinished(async () => {
    await gate.close();
    await provider.close();
    await backend.close();
  });
  await until(() => provider.asked() > 0);
  return { gate, provider, idp };
}

let serial = 0;
async function statusOf(gate: Sallyport, pair: typeof one): Promise<number> {
  serial += 1;
  const now = Math.floor(Date.now() / 1000);
  const claims = { iss: ISSUER, aud: "orders", sub: "zoe", iat: now - 1, exp: now + 600 };
  const token = await signToken(pair, { ...claims, jti: String(serial) });
  return (await ask(gate, "/x", { token })).status;
}

const ready = ({ adminPort }: Sallyport) => ask({ port: adminPort }, "/readyz?verbose");

it.each([1, 2])(
  "keys that are unavailable at startup are fetched again within seconds (%i workers)",
  async (workers) => {
    const { gate, idp } = await start({ workers });
    expect(await statusOf(gate, one)).toBe(503);
    // Local users can log in, so this pod is ready.
    await until(async () => (await ready(gate)).body.includes(`issuers: ${ISSUER} no keys\n`));
    expect((await ready(gate)).status).toBe(200);

    idp.keys = [one.jwk];
    await until(async () => (await ready(gate)).body.includes(`issuers: ${ISSUER} ok\n`), 12_000);
    expect(await statusOf(gate, one)).toBe(200);
  },
);

it("is not ready while no caller could be authenticated, and becomes ready by itself", async () => {
  const { gate, idp } = await start();
  await editConfiguration(gate, (config) => {
    config["users"] = [];
  });
  await until(async () => (await ready(gate)).status === 503);
  expect((await ready(gate)).body).toContain(`not ready\ndraining: no\nissuers: ${ISSUER} no keys`);
  expect((await ask({ port: gate.adminPort }, "/readyz?exclude=issuers")).status).toBe(200);
  expect((await ask({ port: gate.adminPort }, "/livez")).status).toBe(200);

  idp.keys = [one.jwk];
  await until(async () => (await ready(gate)).status === 200, 12_000);
  expect(await statusOf(gate, one)).toBe(200);
  // The last keys stay in use.
  idp.keys = undefined;
  expect(await statusOf(gate, two)).toBe(401);
  expect((await ready(gate)).status).toBe(200);
});

it("a key that is added right after startup is accepted at once", async () => {
  const { gate, provider, idp } = await start({ keys: [one.jwk] });
  expect(await statusOf(gate, one)).toBe(200);
  idp.keys = [one.jwk, two.jwk];
  expect(await statusOf(gate, two)).toBe(200);
  expect(provider.asked()).toBe(2);
});

it("an outage is logged once, not on every attempt", async () => {
  const { gate, provider } = await start();
  await until(() => provider.asked() >= 3, 20_000);
  const failures = gate
    .log()
    .filter(({ msg }) => msg === "the keys of a trusted issuer could not be fetched");
  expect(failures).toHaveLength(1);
});
