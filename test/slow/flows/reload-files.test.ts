import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { ask } from "../../support/ask.ts";
import { testCertificates } from "../../support/certificates.ts";
import { editConfiguration, mountFiles, replaceFile } from "../../support/edits.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

/** The timer that compares file contents fires every five seconds, and other tests run in parallel. */
const LONG_MS = 12_000;
vi.setConfig({ testTimeout: 60_000 });

const alice = { password: cheapHash(ALICE.password) };
const usersFile = (name: string): string =>
  JSON.stringify({ users: { [name]: { password: cheapHash("x") } } });

let mounted: TemporaryDirectory;
let gate: Sallyport;
beforeAll(async () => {
  mounted = await temporaryDirectory();
  await mountFiles(mounted.path, { version: "1.0.0\n" });
  gate = await startSallyport({
    target: "http://127.0.0.1:1",
    config: {
      version: { text: `\${file:${join(mounted.path, "version")}}` },
      users: ["users.yaml", "b.yaml", "c.yaml"].map((path) => ({ kind: "file", path })),
    },
    files: {
      "users.yaml": JSON.stringify({ users: { alice } }),
      "b.yaml": usersFile("b"),
      "c.yaml": usersFile("c"),
    },
  });
}, 60_000);
afterAll(async () => {
  await gate.close();
  await mounted.close();
});

const version = async () => {
  const { body } = await ask(gate, "/api/version", { token: gate.token });
  return body;
};
const told = (message: string) => gate.log().filter(({ msg }) => msg === message);
const successful = async () =>
  (await scrape(gate)).value("sallyport_config_last_reload_successful");

it("a file in ${file:…} is followed, even through a swap of `..data`, and named in the log", async () => {
  expect(await version()).toContain("1.0.0");
  for (const next of ["1.0.1", "1.0.2"]) {
    await mountFiles(mounted.path, { version: `${next}\n` });
    await until(async () => (await version()).includes(next), LONG_MS);
  }
  await until(() => told("the configuration was reloaded").length >= 2);
  expect(told("the configuration was reloaded").at(-1)).toMatchObject({
    changed: ["version.text"],
    files: [join(mounted.path, "version")],
  });
});

it("a renewed certificate is logged with its expiry", async () => {
  const { client, server } = await testCertificates();
  const count = told("another certificate is served").length;
  await replaceFile(gate, "tls.key", client.key);
  await replaceFile(gate, "tls.crt", client.cert);
  await until(() => told("another certificate is served").length > count, LONG_MS);
  expect(told("another certificate is served").at(-1)).toMatchObject({
    level: "info",
    notAfter: expect.stringMatching(/^20\d\d-\d\d-\d\dT[\d:.]+Z$/),
  });
  const last = told("the configuration was reloaded").at(-1);
  expect(last).toMatchObject({ changed: [] });
  expect(last?.["files"]).toContain(join(gate.directory, "tls.crt"));
  await replaceFile(gate, "tls.key", server.key);
  await replaceFile(gate, "tls.crt", server.cert);
  await until(() => told("another certificate is served").length > count + 1, LONG_MS);
  await until(async () => (await successful()) === 1, LONG_MS);
});

describe("config_last_reload_successful", () => {
  it("is 0 while any of two users files is broken", async () => {
    const broken = "users: [";
    await replaceFile(gate, "b.yaml", broken);
    await until(async () => (await successful()) === 0, LONG_MS);
    const reads = told("the users file was reloaded").length;
    await replaceFile(gate, "c.yaml", usersFile("d"));
    await until(() => told("the users file was reloaded").length > reads, LONG_MS);
    expect(await successful()).toBe(0);
    await replaceFile(gate, "b.yaml", usersFile("e"));
    await until(async () => (await successful()) === 1, LONG_MS);
  });

  it("is 1 again when a broken users file is no longer used", async () => {
    const [users, config] = await Promise.all(
      ["b.yaml", "config.yaml"].map((name) => readFile(join(gate.directory, name), "utf8")),
    );
    await replaceFile(gate, "b.yaml", "users: [");
    await until(async () => (await successful()) === 0, LONG_MS);
    await editConfiguration(gate, (written) => {
      written["users"] = ["users.yaml", "c.yaml"].map((path) => ({ kind: "file", path }));
    });
    await until(async () => (await successful()) === 1, LONG_MS);
    const reloads = told("the configuration was reloaded").length;
    await replaceFile(gate, "b.yaml", users ?? "");
    await replaceFile(gate, "config.yaml", config ?? "");
    await until(() => told("the configuration was reloaded").length > reloads, LONG_MS);
  });

  it("is 1 again when a deleted file is restored unchanged", async () => {
    for (const name of ["b.yaml", "tls.crt"]) {
      const content = await readFile(join(gate.directory, name), "utf8");
      await rm(join(gate.directory, name));
      await until(async () => (await successful()) === 0, LONG_MS);
      await replaceFile(gate, name, content);
      await until(async () => (await successful()) === 1, LONG_MS);
    }
  });
});

it("a file that a configuration names may appear later", async () => {
  const count = told("the configuration was not reloaded").length;
  const config = await readFile(join(gate.directory, "config.yaml"), "utf8");
  await replaceFile(gate, "config.yaml", config.replace("c.yaml", "late.yaml"));
  await until(() => told("the configuration was not reloaded").length > count, LONG_MS);
  await replaceFile(gate, "late.yaml", usersFile("late"));
  await until(async () => (await successful()) === 1, LONG_MS);
  expect(told("the configuration was not reloaded")).toHaveLength(count + 1);
  await replaceFile(gate, "config.yaml", config);
  await until(
    () => JSON.stringify(told("the configuration was reloaded").at(-1)).includes("users[2].path"),
    LONG_MS,
  );
});
