/** `sallyport api-key create`. */
import { chmod, readFile, stat, symlink } from "node:fs/promises";
import { expect, it } from "vitest";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { readApiKeys } from "../../src/tokens/api-keys/api-key-file.ts";
import { command } from "./command.ts";

const create = (file: string, ...args: string[]) =>
  command(["api-key", "create", ...args, "--file", file]);

it("adds a key whose hash the file has, and prints it alone", async () => {
  await using directory = await temporaryDirectory();
  const file = await directory.write(
    "keys.yaml",
    "# ours\nkeys:\n  old: # kept\n    hash: sha256:" + "a".repeat(64) + "\n",
  );
  await chmod(file, 0o640);
  const { code, out, err } = await create(file, "ci", "--groups", "a,b", "--expires", "90d");
  expect(code).toBe(0);
  expect(out).toMatch(/^sp_[0-9a-f]{12}_[\w-]{43}\n$/);
  expect(err).not.toContain("sp_");
  const text = await readFile(file, "utf8");
  expect(text).toMatch(/^# ours\nkeys:\n {2}old:\n {4}# kept\n/);
  const [, added] = readApiKeys(Buffer.from(text), file);
  expect(Date.now() - (added?.created ?? 0)).toBeLessThan(60_000);
  expect(added).toMatchObject({ name: "ci", groups: ["a", "b"], subject: "ci" });
  expect((await stat(file)).mode & 0o777).toBe(0o640);
});

it("keeps JSON as JSON, and says when a key was made", async () => {
  await using directory = await temporaryDirectory();
  const file = await directory.write(
    "keys.json",
    '{ "keys": { "old": { "hash": "sha256:' + "a".repeat(64) + '" } } }',
  );
  expect((await create(file, "ci")).code).toBe(0);
  const { keys } = JSON.parse(await readFile(file, "utf8"));
  expect(Object.keys(keys)).toEqual(["old", "ci"]);
  expect(Date.now() - Date.parse(keys.ci.created)).toBeLessThan(60_000);
});

it("changes the file that a link names, and loses no key to another", async () => {
  await using directory = await temporaryDirectory();
  const file = await directory.write("keys.yaml", "keys: {}\n");
  const link = `${directory.path}/link.yaml`;
  await symlink(file, link);
  const names = ["a", "b", "c", "d"];
  const made = await Promise.all(names.map((name) => create(link, name)));
  const kept = readApiKeys(await readFile(file), file).map(({ name }) => name);
  expect(kept).toEqual(names.filter((_, index) => made[index]?.code === 0));
  expect(kept.length).toBeGreaterThan(0);
});

it("is read by check, which names what is wrong in the file", async () => {
  await using directory = await temporaryDirectory();
  await directory.write("keys.yaml", "keys:\n  ci: { hash: nonsense }\n");
  const config = await directory.write(
    "config.yaml",
    "server: { tls: off }\napiKeys: [{ kind: file, path: keys.yaml }]\nupstreams: { app: { targets: [http://127.0.0.1:9] } }\n",
  );
  const { code, err } = await command(["check", "--config", config]);
  expect([code, err]).toEqual([78, expect.stringContaining("hash must be sha256:")]);
});

it.each([
  [["c i"], "the name of a key"],
  [["ci", "--scopes", "a b"], "--scopes needs scopes"],
  [["ci", "--expires", "soon"], "--expires needs a duration"],
])("refuses %j", async (args, why) => {
  await using directory = await temporaryDirectory();
  const { code, err } = await create(`${directory.path}/keys.yaml`, ...args);
  expect([code, err]).toEqual([2, expect.stringContaining(why)]);
});
