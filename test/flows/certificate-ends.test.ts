/** When certificates end besides the served one: metrics for all of them, and warnings for those that end soon. */
import { X509Certificate } from "node:crypto";
import { expect, it } from "vitest";
import type { Status } from "../../src/core/status.ts";
import { ask } from "../support/ask.ts";
import { clientAuthority } from "../support/client-certificates.ts";
import { replaceFile } from "../support/edits.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { until } from "../support/until.ts";

const endOf = (pem: string): number =>
  Math.floor(new X509Certificate(pem).validToDate.getTime() / 1_000);

it("are exported and warned of, the earliest of each file, and follow a reload", async () => {
  const [long, short, backends] = [
    await clientAuthority("Long"),
    await clientAuthority("Short", [-1, 5]),
    await clientAuthority("Backends", [-1, 3]),
  ];
  const shown = await long.certificate({ days: [-1, 20] });
  const tls = { caFile: "backends.crt", certFile: "shown.crt", keyFile: "shown.key" };
  await using gate = await startSallyport({
    withoutToken: true,
    target: "https://127.0.0.1:1",
    config: {
      server: { tls: { clientCertificates: { mode: "optional", caFile: "clients.crt" } } },
      upstreams: { app: { targets: ["https://127.0.0.1:1"], tls } },
    },
    files: {
      "clients.crt": `${long.cert}\n${short.cert}`,
      "backends.crt": backends.cert,
      "shown.crt": shown.cert,
      "shown.key": shown.key,
    },
  });
  const value = async (name: string) =>
    (await scrape(gate)).value(`sallyport_${name.replace("{", "_not_after_timestamp_seconds{")}`);
  const clients = "tls_client_ca_not_after_timestamp_seconds";
  expect(await value(clients)).toBe(endOf(short.cert));
  expect(await value('upstream_ca{upstream="app"}')).toBe(endOf(backends.cert));
  expect(await value('upstream_certificate{upstream="app"}')).toBe(endOf(shown.cert));
  const warned = gate
    .log()
    .filter(({ msg }) => String(msg).startsWith("a file needs attention"))
    .map(({ level, msg, file }) => [level, msg, String(file).replace(/^.*\//, "")]);
  expect(warned).toEqual(
    expect.arrayContaining([
      ["warn", "a file needs attention: the certificate ends in 19 days", "shown.crt"],
      // The other one lets everybody in whom it has certified.
      ["warn", "a file needs attention: certificate 2 of 2 ends in 4 days", "clients.crt"],
      ["error", "a file needs attention: the certificate ends in 2 days", "backends.crt"],
    ]),
  );
  const status: Status = JSON.parse((await ask({ port: gate.adminPort }, "/-/status")).body);
  const rows = status.dependencies.filter(({ kind }) => kind === "certificate");
  expect(rows.map(({ name, state, words }) => `${name} ${state} ${words}`)).toEqual([
    expect.stringMatching(/^served good ends in /),
    expect.stringMatching(/^client CA warn ends in 4d/),
    expect.stringMatching(/^upstream certificate \(app\) good ends in 19d/),
    expect.stringMatching(/^upstream CA \(app\) warn ends in 2d/),
  ]);
  await replaceFile(gate, "clients.crt", long.cert);
  await ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
  await until(async () => (await value(clients)) === endOf(long.cert));
});
