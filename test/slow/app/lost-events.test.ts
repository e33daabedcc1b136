/** File systems without change events, simulated with a link to a file in a directory that is not watched. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { makeKey } from "../../../src/tokens/keys/key-making.ts";
import { readKeyFiles } from "../../../src/tokens/keys/key-directory.ts";
import { openOwnKeys } from "../../../src/tokens/keys/watched-keys.ts";
import { recordedLog } from "../../support/recorded-log.ts";
import { watchFile } from "../../support/watch-file.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

it("a file change without an event is detected within seconds", async () => {
  await using directory = await temporaryDirectory();
  const elsewhere = join(directory.path, "far/away");
  const watched = join(directory.path, "here/watched");
  await mkdir(elsewhere, { recursive: true });
  await mkdir(watched, { recursive: true });
  await writeFile(join(elsewhere, "keys.json"), "one");
  await symlink(join(elsewhere, "keys.json"), join(watched, "keys.json"));
  const seen: string[] = [];
  const file = watchFile(join(watched, "keys.json"), {
    onChange: (content) => seen.push(content.text),
    onUnreadable: () => seen.push("unreadable"),
  });
  onTestFinished(() => file.close());
  for (const text of ["two", "six"]) {
    const began = performance.now();
    await writeFile(join(elsewhere, "keys.json"), text);
    await until(() => seen.at(-1) === text, 20_000);
    // Sooner than the unconditional check.
    expect(performance.now() - began).toBeLessThan(20_000);
  }
}, 60_000);

it("a key change without an event is detected within seconds", async () => {
  await using directory = await temporaryDirectory();
  const elsewhere = join(directory.path, "far/away");
  const watched = join(directory.path, "here/keys");
  await mkdir(elsewhere, { recursive: true });
  await mkdir(watched, { recursive: true });
  const write = (): Promise<void> => {
    const key = JSON.stringify(makeKey("ES256").export({ format: "jwk" }));
    return writeFile(join(elsewhere, "a.json"), key, { mode: 0o600 });
  };
  await write();
  await symlink(join(elsewhere, "a.json"), join(watched, "a.json"));
  const files = await readKeyFiles(watched);
  const keys = await openOwnKeys({ algorithm: "ES256", files, log: recordedLog() });
  onTestFinished(() => keys.close());
  const first = keys.signing?.kid;
  expect(first).toBeDefined();
  // After the initial check.
  await new Promise((resolve) => setTimeout(resolve, 500));
  const began = performance.now();
  await write();
  await until(() => keys.signing?.kid !== first, 20_000);
  expect(performance.now() - began).toBeLessThan(20_000);
}, 60_000);
