import { afterAll, beforeAll, expect, it } from "vitest";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { resourcesOf } from "../../support/proxy-resources.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
/** Measured: 140 to 156 MiB. */
const MAX_IDLE_BYTES = 240 * MIB;

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

it("uses little memory when idle with four workers", async () => {
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { workers: 4 } },
  });
  const { residentBytes } = await resourcesOf(gate);
  await until(async () => (await residentBytes()) < MAX_IDLE_BYTES, 30_000);
  expect(await residentBytes()).toBeLessThan(MAX_IDLE_BYTES);
});
