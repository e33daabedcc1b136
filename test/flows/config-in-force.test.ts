/** `/-/config` and the metric of its hash show the configuration in force, not what the file contains now, and no secrets. */
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ask } from "../support/ask.ts";
import { editConfiguration, type WrittenConfiguration } from "../support/edits.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";

vi.setConfig({ testTimeout: 60_000 });
const SECRET = "a-secret-of-the-issuer";

let gate: Sallyport;
beforeAll(async () => {
  gate = await startSallyport({
    withoutToken: true,
    target: "http://127.0.0.1:1",
    config: { tokens: { issuer: "${ISSUER_TOKEN}" } },
    env: { ISSUER_TOKEN: SECRET },
  });
}, 60_000);
afterAll(() => gate.close());

interface Page {
  readonly hash: string;
  readonly needRestart: readonly string[];
  readonly values: readonly { key: string; value: unknown; origin: string }[];
}

async function page(): Promise<Page & { valueOf(key: string): unknown }> {
  const { status, body } = await ask({ port: gate.adminPort }, "/-/config");
  expect(status).toBe(200);
  expect(body).not.toContain(SECRET);
  const read: Page = JSON.parse(body);
  expect(read).toMatchObject({
    id: expect.any(Number),
    message: expect.any(String),
    success: true,
  });
  return { ...read, valueOf: (key) => read.values.find((row) => row.key === key)?.value };
}

/** Returns the number that the metric has for a hash in base64url. */
const numberOf = (hash: string): number => Buffer.from(hash, "base64url").readUIntBE(0, 6);

async function hashMetric(from: { readonly adminPort: number } = gate): Promise<number> {
  return (await scrape(from)).value("sallyport_config_hash") ?? 0;
}

async function reload(change: (config: WrittenConfiguration) => void): Promise<number> {
  await editConfiguration(gate, change);
  return (await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" })).status;
}

it("shows values, defaults and where they come from", async () => {
  const { values, valueOf, needRestart, hash } = await page();
  expect(valueOf("tokens.issuer")).toBe("${ISSUER_TOKEN}");
  expect(valueOf("server.workers")).toBe(1);
  expect(values.find(({ key }) => key === "server.timeouts.request")?.origin).toBe("default");
  expect(values.find(({ key }) => key === "routes[0].path")?.origin).toMatch(/config\.yaml.*\d/);
  expect(needRestart).toEqual([]);
  expect(hash).toMatch(/^[\w-]{43}$/);
  expect((await page()).hash).toBe(hash);
  expect(await hashMetric()).toBe(numberOf(hash));
});

it("has the same hash in another process with other threads' metrics, whatever the secrets are", async () => {
  const config = { tokens: { issuer: "${ISSUER_TOKEN}" } };
  const start = (secret: string, workers: number): Promise<Sallyport> =>
    startSallyport({
      withoutToken: true,
      target: "http://127.0.0.1:1",
      config: { ...config, server: { workers } },
      env: { ISSUER_TOKEN: secret },
    });
  await using one = await start("one", 2);
  await using two = await start("two", 2);
  expect(await hashMetric(one)).toBe(await hashMetric(two));
  expect(await hashMetric(one)).toBeGreaterThan(2 ** 24);
  expect(await hashMetric(one)).not.toBe(await hashMetric());
});

it("follows a reload, and lists keys that need a restart", async () => {
  const before = await page();
  const changed = await reload((config) => {
    config.routes[0] = { ...config.routes[0], path: "/other/" };
    config.server["workers"] = 3;
    config.server["timeouts"] = { request: "7s" };
  });
  expect(changed).toBe(200);
  const after = await page();
  expect([after.valueOf("routes[0].path"), after.valueOf("server.timeouts.request")]).toEqual([
    "/other/",
    "7s",
  ]);
  expect([after.valueOf("server.workers"), after.needRestart]).toEqual([1, ["server.workers"]]);
  expect(after.hash).not.toBe(before.hash);
  expect(await hashMetric()).toBe(numberOf(after.hash));
  // A refused configuration changes nothing.
  expect(await reload((config) => (config.upstreams["broken"] = {}))).toBe(422);
  expect((await page()).hash).toBe(after.hash);
});

it("refuses requests from web pages, and methods other than GET", async () => {
  const origin = { headers: { origin: "https://evil.example" } };
  expect((await ask({ port: gate.adminPort }, "/-/config", origin)).status).toBe(403);
  expect((await ask({ port: gate.adminPort }, "/-/config", { method: "POST" })).status).toBe(405);
});
