/** A reload that failed is failed wherever an operator looks, and the changes shown are those of the last reload. */
import { mkdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { expect, it } from "vitest";
import type { StatusReload } from "../../../src/core/status.ts";
import { command, keysCommand } from "../../cli/command.ts";
import { ask } from "../../support/ask.ts";
import { editConfiguration, replaceFile } from "../../support/edits.ts";
import { type Sallyport, startSallyport } from "../../support/sallyport.ts";
import { scrape } from "../../support/scrape.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

const TARGET = "http://127.0.0.1:1";

interface Seen {
  readonly reload: StatusReload | undefined;
  readonly page: string;
  readonly top: string;
  readonly metric: number | undefined;
}

/** Everything that shows the outcome of the last reload. */
async function seen(gate: Sallyport): Promise<Seen> {
  const admin = { port: gate.adminPort };
  const { body } = await ask(admin, "/-/status");
  const url = `http://127.0.0.1:${gate.adminPort}`;
  return {
    reload: (JSON.parse(body) as { reload?: StatusReload }).reload,
    page: (await ask(admin, "/-/")).body,
    top: (await command(["top", "--once", "--url", url])).out,
    metric: (await scrape(gate)).value("sallyport_config_last_reload_successful"),
  };
}

function expectFailed({ reload, page, top, metric }: Seen, problem: string): void {
  expect(metric).toBe(0);
  expect(reload).toMatchObject({ successful: false, changes: [], files: [] });
  expect(reload?.problems.join("\n")).toContain(problem);
  expect(page).toContain("not in force");
  expect(page).toContain(problem);
  expect(top).toMatch(/^reload failed \S+ ago: .+$/m);
  expect(top).not.toContain("values changed");
}

function expectGood({ reload, page, top, metric }: Seen): void {
  expect(metric).toBe(1);
  expect(reload).toMatchObject({ successful: true, problems: [] });
  expect(page).not.toContain("not in force");
  expect(top).not.toContain("reload failed");
}

/** Long enough for the poll of a file whose change no event reported. */
const POLL_MS = 20_000;
const metricIs = (gate: Sallyport, value: number) => async (): Promise<boolean> =>
  (await scrape(gate)).value("sallyport_config_last_reload_successful") === value;

it(
  "a configuration that is broken and repaired has changed nothing",
  { timeout: 60_000 },
  async () => {
    await using gate = await startSallyport({ withoutToken: true, target: TARGET });
    const good = await readFile(join(gate.directory, "config.yaml"), "utf8");
    await replaceFile(gate, "config.yaml", `${good}\nx: 1\n`);
    await until(metricIs(gate, 0));
    expectFailed(await seen(gate), "config.yaml");
    await replaceFile(gate, "config.yaml", good);
    await until(metricIs(gate, 1));
    const repaired = await seen(gate);
    expectGood(repaired);
    expect(repaired.reload?.changes).toEqual([]);
    expect(repaired.top).toMatch(/^reloaded \S+ ago: 0 values changed$/m);

    await editConfiguration(gate, (config) => {
      config["login"] = { hashing: { queue: 70 } };
    });
    await until(async () => (await seen(gate)).reload?.changes.length === 1);
    const edited = await readFile(join(gate.directory, "config.yaml"), "utf8");
    await replaceFile(gate, "config.yaml", "x: 1\n");
    await until(metricIs(gate, 0));
    expectFailed(await seen(gate), "config.yaml");
    await replaceFile(gate, "config.yaml", edited);
    await until(metricIs(gate, 1));
    expect((await seen(gate)).reload).toMatchObject({ successful: true, changes: [] });

    await replaceFile(gate, "config.yaml", "x: 1\n");
    await until(metricIs(gate, 0));
    await replaceFile(gate, "config.yaml", good);
    await until(metricIs(gate, 1));
    expect((await seen(gate)).reload).toMatchObject({
      successful: true,
      changes: [{ key: "login.hashing.queue", before: 70 }],
    });
  },
);

it(
  "a removed key directory, users file or revocation file is a failed reload until it is back",
  { timeout: 120_000 },
  async () => {
    await using outside = await temporaryDirectory();
    const keys = join(outside.path, "keys");
    await keysCommand("generate", "-d", keys);
    await using gate = await startSallyport({
      withoutToken: true,
      target: TARGET,
      config: { tokens: { keys, revocation: { file: "revoked.yaml" } } },
      files: { "revoked.yaml": "jti: [one]\n" },
    });
    const users = join(gate.directory, "users.yaml");
    const revoked = join(gate.directory, "revoked.yaml");
    for (const path of [keys, users, revoked]) {
      await rename(path, `${path}.away`);
      await until(metricIs(gate, 0));
      expectFailed(await seen(gate), basename(path));
      await rename(`${path}.away`, path);
      await until(metricIs(gate, 1), POLL_MS);
      expectGood(await seen(gate));
    }
    // Two at a time: one of them repaired is not enough.
    const text = await readFile(users, "utf8");
    await rm(users);
    await mkdir(users);
    await writeFile(revoked, "jti: 7\n");
    await until(async () => ((await seen(gate)).reload?.problems.length ?? 0) >= 2);
    await rm(users, { recursive: true });
    await writeFile(users, text);
    await until(async () => !JSON.stringify((await seen(gate)).reload).includes("users.yaml"));
    expectFailed(await seen(gate), "revoked.yaml");
  },
);
