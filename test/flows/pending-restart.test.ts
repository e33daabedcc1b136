import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { editConfiguration, replaceFile, type WrittenConfiguration } from "../support/edits.ts";
import { type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

/** Some keys take effect only after a restart. Each reload reports them while they differ from the running process. */

vi.setConfig({ testTimeout: 60_000 });
let gate: Sallyport;
beforeAll(async () => {
  gate = await startSallyport({ withoutToken: true, target: "http://127.0.0.1:1" });
}, 60_000);
afterAll(() => gate.close());

async function needRestart(change: (config: WrittenConfiguration) => void): Promise<unknown> {
  await editConfiguration(gate, change);
  const { body } = await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  const { success, needRestart: keys } = JSON.parse(body);
  expect(success).toBe(true);
  return keys;
}

const other = (config: WrittenConfiguration): void => {
  config.routes[0] = { ...config.routes[0], path: `/public-${Math.random()}/` };
};

it("every reload reports a key until it has its initial value again", async () => {
  expect(await needRestart((config) => (config.server["workers"] = 2))).toEqual(["server.workers"]);
  expect(await needRestart(other)).toEqual(["server.workers"]);
  expect(await needRestart((config) => delete config.server["workers"])).toEqual([]);
});

it("a section that is added is reported as one key", async () => {
  const { ca } = await testCertificates();
  await replaceFile(gate, "ca.pem", ca);
  const tls = { certFile: "tls.crt", keyFile: "tls.key" };
  const clientCertificates = { mode: "required", caFile: "ca.pem" };
  expect(
    await needRestart((config) => (config.server["tls"] = { ...tls, clientCertificates })),
  ).toEqual(["server.tls.clientCertificates"]);
  expect(await needRestart((config) => (config.server["tls"] = tls))).toEqual([]);
});

it("the certificate is still reloaded while turning off TLS waits for a restart", async () => {
  expect(await needRestart((config) => (config.server["tls"] = "off"))).toEqual([
    "server.tls.mode",
  ]);
  const { client } = await testCertificates();
  const served = () => gate.log().filter(({ msg }) => msg === "another certificate is served");
  await replaceFile(gate, "tls.key", client.key);
  await replaceFile(gate, "tls.crt", client.cert);
  await until(() => served().length === 1, 12_000);
  // A file that is no longer configured may be broken.
  await replaceFile(gate, "tls.crt", "broken");
  expect(await needRestart(other)).toEqual(["server.tls.mode"]);
});
