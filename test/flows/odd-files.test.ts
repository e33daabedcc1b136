import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { replaceFile } from "../support/edits.ts";
import { namedPipe } from "../support/named-pipe.ts";
import { ALICE, cheapHash, type Sallyport, startSallyport } from "../support/sallyport.ts";
import { until } from "../support/until.ts";

/** The timer that compares file contents fires every five seconds, and other tests run in parallel. */
const LONG_MS = 20_000;
vi.setConfig({ testTimeout: 60_000 });

const alice = { password: cheapHash(ALICE.password) };

let contents: Record<string, string>;
let gate: Sallyport;
beforeAll(async () => {
  const { ca, server } = await testCertificates();
  const files = { "authorities.crt": ca, secret: "1.0.0", "users.yaml": usersFile() };
  gate = await startSallyport({
    target: "http://127.0.0.1:1",
    config: {
      server: { tls: { clientCertificates: { mode: "optional", caFile: "authorities.crt" } } },
      version: { text: "${file:secret}" },
    },
    files,
  });
  contents = { ...files, "tls.key": server.key };
}, 60_000);
afterAll(() => gate?.close());

function usersFile(others: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ users: { alice, ...others } });
}

const reload = () => ask({ port: gate.adminPort }, "/-/reload", { method: "POST" });
const logged = (message: string) => gate.log().filter(({ msg }) => msg === message);

it.each(["users.yaml", "secret", "tls.key", "authorities.crt"])(
  "a named pipe in place of %s blocks nothing, and is reported",
  async (name) => {
    const file = join(gate.directory, name);
    await rename(await namedPipe(join(gate.directory, "pipe")), file);
    gate.signal("SIGHUP");
    const { status, body } = await reload();
    expect(status).toBe(422);
    expect(body).toContain("regular file");
    expect((await ask(gate, "/api/version", { token: gate.token })).body).toContain("1.0.0");

    await replaceFile(gate, name, contents[name] ?? "");
    await until(async () => (await reload()).status === 200, LONG_MS);
  },
);

it("a named pipe or a directory in place of config.yaml blocks nothing, and is reported", async () => {
  const file = join(gate.directory, "config.yaml");
  await rename(file, join(gate.directory, "kept"));
  await namedPipe(file);
  gate.signal("SIGHUP");
  const { status, body } = await reload();
  expect(status).toBe(422);
  expect(body).toContain("the file cannot be read (not a regular file)");
  await rm(file);
  await mkdir(file);
  expect((await reload()).body).toContain(
    "the file cannot be read (not a regular file but a directory)",
  );
  await rm(file, { recursive: true });
  await rename(join(gate.directory, "kept"), file);
  await until(async () => (await reload()).status === 200, LONG_MS);
});

it("requests are served while many users are loaded", async () => {
  const others = Object.fromEntries(
    Array.from({ length: 8000 }, (_, index) => [`user${index}`, alice]),
  );
  const count = logged("the users file was reloaded").length;
  await replaceFile(gate, "users.yaml", usersFile(others));
  let answers = 0;
  await until(async () => {
    await ask({ port: gate.adminPort }, "/livez");
    answers += 1;
    return logged("the users file was reloaded").length > count;
  }, LONG_MS);
  expect(answers).toBeGreaterThan(12);
  expect((await reload()).status).toBe(200);
  expect(await gate.login("user7999", ALICE.password)).toMatch(/^ey/);
});
