/** Time-dependent tests of targets given by name: the TTL, stale addresses, and a DNS server that does not answer. */
import { expect, it } from "vitest";
import { ask } from "../../support/ask.ts";
import { logLine } from "../../support/log-line.ts";
import { reached, useNamedTargets } from "../../support/named-targets.ts";
import { until } from "../../support/until.ts";

const NAME = "app.test";
const { backends, names, start } = useNamedTargets();

it("the addresses of a name are resolved again after the TTL", async () => {
  const { port } = await backends("127.0.0.11", "127.0.0.12");
  const dns = await names({ [NAME]: ["127.0.0.11"] }, 1);
  const resolve = { servers: [dns.address], interval: "1m" };
  const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
  expect(await reached(gate)).toEqual(["127.0.0.11"]);
  dns.zone[NAME] = ["127.0.0.12"];
  await until(async () => (await reached(gate, 1))[0] === "127.0.0.12");
});

it("the last known addresses are dropped after staleFor", async () => {
  const { port } = await backends("127.0.0.11");
  const dns = await names({ [NAME]: ["127.0.0.11"] });
  const resolve = { servers: [dns.address], interval: "200ms", staleFor: "1s" };
  const gate = await start({ targets: [`http://${NAME}:${port}`], resolve });
  expect(await reached(gate)).toEqual(["127.0.0.11"]);
  dns.zone[NAME] = [];
  await logLine(gate, { msg: "a target has no address any more" });
  const { status, headers } = await ask(gate, "/x", { token: gate.token });
  expect([status, headers["proxy-status"]]).toEqual([502, expect.stringContaining("dns_error")]);
  dns.zone[NAME] = ["127.0.0.11"];
  await logLine(gate, { msg: "a target is found again" });
  expect(await reached(gate)).toEqual(["127.0.0.11"]);
});

it("requests wait for the first DNS answer, but no longer than the queue timeout", async () => {
  const { port } = await backends("127.0.0.11");
  const dns = await names({ [NAME]: "silent" });
  const upstream = { resolve: { servers: [dns.address] }, queue: { timeout: "300ms" } };
  const gate = await start({ targets: [`http://${NAME}:${port}`], ...upstream });
  expect((await ask(gate, "/x", { token: gate.token })).status).toBe(503);
  dns.zone[NAME] = ["127.0.0.11"];
  await until(async () => (await reached(gate, 1))[0] === "127.0.0.11");
});
