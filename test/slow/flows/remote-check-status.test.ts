/** While the server of a check is away, the status says since when, and that earlier answers count. */
import { expect, it } from "vitest";
import type { Status } from "../../../src/core/status.ts";
import { command } from "../../cli/command.ts";
import { ask } from "../../support/ask.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { type RemoteReply, startRemoteServer } from "../../support/remote-server.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { until } from "../../support/until.ts";

const YES: RemoteReply = { body: { active: true, sub: "zoe" } };

it.each([1, 2])("with %i workers", async (workers) => {
  let reply = YES;
  await using backend = await startEchoBackend();
  await using server = await startRemoteServer(() => reply);
  const introspection = {
    url: server.url,
    clientId: "sallyport",
    clientSecret: "secret",
    cache: "100ms",
    staleFor: "1m",
  };
  await using gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: {
      server: { workers },
      tokens: { trusted: [{ issuer: "opaque", introspection }] },
    },
  });
  const status = async (token: string) => (await ask(gate, "/x", { token })).status;
  const admin = { port: gate.adminPort };
  const shown = async () => {
    const { body } = await ask(admin, "/-/status");
    const { dependencies } = JSON.parse(body) as Status;
    return dependencies.find(({ kind }) => kind === "remote check");
  };
  const check = { kind: "remote check", name: "opaque (introspection)" };
  // Each thread asks for itself.
  for (let asked = 0; asked < 20; asked += 1) expect(await status("opaque")).toBe(200);
  expect(await shown()).toEqual({ ...check, state: "good", words: "no failure" });

  reply = { status: 500 };
  const began = Date.now();
  await until(async () => {
    expect(await status("opaque")).toBe(200);
    return (await shown())?.words === "unavailable, earlier answers are used";
  });
  expect([await status("opaque"), await status("new")]).toEqual([200, 503]);
  const outage = await shown();
  expect(outage).toMatchObject({ ...check, state: "bad" });
  expect(outage?.since).toBeGreaterThanOrEqual(began);
  expect(outage?.since).toBeLessThanOrEqual(Date.now());
  const page = (await ask(admin, "/-/", { headers: { accept: "text/html" } })).body;
  expect(page).toContain("unavailable, earlier answers are used");
  const top = await command(["top", "--url", `http://127.0.0.1:${gate.adminPort}`, "--once"]);
  expect(top.out).toMatch(/remote check +opaque \(introspection\) +unavailable, earlier/);
  const counted = (await scrape(gate)).sum("sallyport_remote_checks_total", 'result="stale"');
  expect(counted).toBeGreaterThan(0);

  reply = YES;
  await until(async () => {
    await status("opaque");
    return (await shown())?.state === "good";
  });
});
