import { afterAll, beforeAll, expect, it } from "vitest";
import { startEchoBackend, type EchoBackend } from "../../support/echo-backend.ts";
import { resourcesOf } from "../../support/proxy-resources.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const MIB = 1024 * 1024;
/** Measured: 140 to 156 MiB. */
const MOST_AT_REST = 240 * MIB;

let backend: EchoBackend;
beforeAll(async () => {
  backend = await startEchoBackend();
});
afterAll(() => backend.close());

it("rests in little memory with four workers", async () => {
  await using gate = await startSallyport({
    target: backend.url,
    config: { server: { workers: 4 } },
  });
  const { residentBytes } = await resourcesOf(gate);
  await until(async () => (await residentBytes()) < MOST_AT_REST, 30_000);
  expect(await residentBytes()).toBeLessThan(MOST_AT_REST);
});
