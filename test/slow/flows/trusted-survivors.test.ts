import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ask } from "../../support/ask.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import {
  type KeySetServer,
  signingPair,
  signToken,
  startKeySetServer,
} from "../../support/foreign-keys.ts";
import { type HoldingBackend, startHoldingBackend } from "../../support/holding-backend.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

vi.setConfig({ testTimeout: 60_000 });
const ISSUER = "https://idp.example.com";
const foreign = signingPair("foreign");
const trust = { audience: "orders", algorithms: ["ES256"] };
const LONG_MS = 12_000;

describe.each([1, 2])("with %i workers", (workers) => {
  let backend: HoldingBackend;
  let provider: KeySetServer;
  let gate: Sallyport;
  let serial = 0;

  beforeAll(async () => {
    backend = await startHoldingBackend();
    provider = await startKeySetServer(() => [foreign.jwk]);
    gate = await startSallyport({
      target: backend.url,
      files: { "jwks.json": '{"keys":[]}' },
      config: {
        server: { workers },
        tokens: {
          trusted: [
            { ...trust, issuer: ISSUER, jwks: { url: provider.url } },
            { ...trust, issuer: "https://file.example.com", jwks: { file: "jwks.json" } },
          ],
        },
      },
    });
  }, 60_000);
  afterAll(async () => {
    await gate.close();
    await provider.close();
    await backend[Symbol.asyncDispose]();
  });

  /** Sends a request on a new connection with a new token. @returns the status. */
  async function status(): Promise<number> {
    serial += 1;
    const now = Math.floor(Date.now() / 1000);
    const claims = { iss: ISSUER, aud: "orders", sub: "zoe", iat: now - 1, exp: now + 600 };
    const token = await signToken(foreign, { ...claims, jti: String(serial) });
    return (await ask(gate, "/x", { token })).status;
  }

  const loaded = (): number =>
    gate
      .log()
      .filter(
        ({ msg, issuer }) =>
          msg === "the keys of a trusted issuer were loaded" && issuer === ISSUER,
      ).length;

  it("the keys of an unavailable issuer survive a change of other token settings", async () => {
    await until(() => loaded() === workers);
    expect(await status()).toBe(200);
    await provider.close();
    await editConfiguration(gate, (config) => {
      Object.assign(config["tokens"] ?? {}, { maxBytes: "9KiB", cache: { entries: 50 } });
    });
    const { body } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
    expect(JSON.parse(body)).toMatchObject({ success: true });
    const statuses = await Promise.all(Array.from({ length: 12 }, status));
    expect(new Set(statuses)).toEqual(new Set([200]));
  });

  it("an invalid key file is logged with its position, and the metric shows it until it is fixed", async () => {
    const successful = async (): Promise<number | undefined> =>
      (await scrape(gate)).value("sallyport_config_last_reload_successful");
    await until(async () => (await successful()) === 1);
    await replaceFile(gate, "jwks.json", '{\n  "keys": [}\n');
    await until(async () => (await successful()) === 0, LONG_MS);
    const told = (): object | undefined =>
      gate
        .log()
        .find(({ msg }) =>
          String(msg).startsWith("the keys of a trusted issuer cannot be reloaded"),
        );
    await until(() => told() !== undefined);
    expect(told()).toMatchObject({ level: "error", line: 2, column: expect.any(Number) });
    await replaceFile(gate, "jwks.json", '{"keys":[]}');
    await until(async () => (await successful()) === 1, LONG_MS);
  });
});
