import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

it("after all threads are drained, their metrics are still available, and a reload is answered", async () => {
  await using gate = await startSallyport({
    target: "http://127.0.0.1:1",
    config: { server: { workers: 2 } },
  });
  const admin = { port: gate.adminPort };
  expect((await ask(gate, "/x")).status).toBe(401);
  await ask(admin, "/-/drain", { method: "POST" });
  await until(async () => (await ask(admin, "/-/drain")).body.includes("drained"), 10_000);
  const { status } = await ask(admin, "/-/reload", { method: "POST" });
  expect(status).toBe(200);
  const page = await scrape(gate);
  expect(page.sum("sallyport_http_requests_total", 'code="401"')).toBe(1);
  expect(page.value("sallyport_draining")).toBe(1);
  expect(await gate.stop()).toBe(0);
}, 60_000);
