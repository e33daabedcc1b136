/** Signals with which operators of other proxies reopen logs, upgrade or stop them never cut a request off. */
import { expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { startHoldingBackend } from "../support/holding-backend.ts";
import { startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

it("ignores SIGUSR1 and SIGUSR2, and drains on SIGQUIT", { timeout: 60_000 }, async () => {
  await using backend = await startHoldingBackend();
  await using gate = await startSallyport({ withoutToken: true, target: backend.url });
  const answer = ask(gate, "/public/hold/1");
  await until(() => backend.held().length === 1);
  gate.signal("SIGUSR1");
  gate.signal("SIGUSR2");
  expect((await ask({ port: gate.adminPort }, "/readyz")).status).toBe(200);
  gate.signal("SIGQUIT");
  await until(() => gate.log().some(({ msg }) => msg === "asked to stop"));
  expect(gate.log()).toContainEqual(expect.objectContaining({ signal: "SIGQUIT" }));
  backend.release("/public/hold/1");
  expect((await answer).status).toBe(200);
  expect(await gate.exit).toBe(0);
});
