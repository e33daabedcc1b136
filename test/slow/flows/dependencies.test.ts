/** What Sallyport depends on and what fails is the same everywhere: status page, `top`, `/readyz?verbose`, `doctor`. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Dependency, Status } from "../../../src/core/status.ts";
import { command } from "../../cli/command.ts";
import { ask } from "../../support/ask.ts";
import { closedPort } from "../../support/dead-ends.ts";
import { startEchoBackend } from "../../support/echo-backend.ts";
import { signingPair, startKeySetServer } from "../../support/foreign-keys.ts";
import { startSallyport } from "../../support/sallyport.ts";
import { until } from "../../support/until.ts";

const rowText = ({ kind, name, state, words }: Dependency): string =>
  `${kind} ${name} ${state} ${words.replace(/, .* old/, "")}`;

it.each([1, 2])("with %i worker(s)", { timeout: 60_000 }, async (workers) => {
  await using backend = await startEchoBackend();
  const { jwk } = signingPair("foreign");
  const provider = await startKeySetServer(() => [jwk]);
  const dead = await closedPort();
  await using gate = await startSallyport({
    withoutToken: true,
    target: backend.url,
    config: {
      server: { workers },
      users: [
        { kind: "file", path: "users.yaml" },
        {
          kind: "ldap",
          url: `ldap://127.0.0.1:${dead}`,
          startTls: false,
          search: { base: "dc=example", filter: "(uid={username})" },
        },
      ],
      shared: { kind: "redis", url: `redis://127.0.0.1:${dead}` },
      tokens: {
        trusted: [
          {
            issuer: "https://id.example.com",
            audience: "orders",
            algorithms: ["ES256"],
            jwks: { url: provider.url },
          },
        ],
      },
    },
  });
  const admin = { port: gate.adminPort };
  const rows = async (): Promise<string[]> => {
    const status: Status = JSON.parse((await ask(admin, "/-/status")).body);
    return status.dependencies.map(rowText);
  };
  await until(async () => (await rows()).includes("key set https://id.example.com good 1 key"));
  expect(await rows()).toEqual([
    "user store ldap bad ECONNREFUSED",
    "state server redis bad unavailable",
    "key set https://id.example.com good 1 key",
    "files configuration and the files that it names good in force",
    expect.stringMatching(/^certificate served good ends in /),
    expect.stringMatching(/^signing key tokens good/),
  ]);

  await provider[Symbol.asyncDispose]();
  await ask(admin, "/-/reload", { method: "POST" });
  await until(async () =>
    (await rows()).some((row) => row.startsWith("key set https://id.example.com warn")),
  );
  const own = `admin.listen=127.0.0.1:${gate.adminPort}`;
  const config = ["--config", join(gate.directory, "config.yaml"), "--set", own];
  const doctor = await command(["doctor", ...config]);
  expect(doctor.out).toMatch(/the running proxy\n-+\n.* user store ldap: ECONNREFUSED/);
  expect(doctor.out).toMatch(/key set https:\/\/id.example.com: .*, and cannot be fetched/);
  await writeFile(join(gate.directory, "users.yaml"), "users: [");
  const broken = "files configuration and the files that it names bad";
  await until(async () => (await rows()).some((row) => row.startsWith(broken)));

  const page = (await ask(admin, "/-/")).body;
  const top = await command(["top", "--once", "--url", `http://127.0.0.1:${gate.adminPort}`]);
  const verbose = (await ask(admin, "/readyz?verbose")).body;
  const words = ["ECONNREFUSED", "unavailable", "cannot be fetched", "but not in force"];
  for (const each of words) {
    expect(page).toContain(each);
    expect(top.out).toContain(each);
    expect(verbose).toContain(each);
  }
  expect(page).toContain("3 of 6 fail");
  expect(verbose).toContain("state server: redis fails: unavailable");
  expect((await ask(admin, "/readyz")).body).toBe("ready\n");
});
