import { mkdir, rename, rm, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { watchFile } from "../support/watch-file.ts";
import { mountFiles } from "../support/edits.ts";
import { isSoonInForce } from "../support/soon.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

function watching(path: string) {
  const seen: string[] = [];
  const errors: unknown[] = [];
  const file = watchFile(path, {
    onChange: (content) => seen.push(content.text),
    onUnreadable: (error) => errors.push(error),
  });
  onTestFinished(() => file.close());
  return { file, seen, errors };
}

test("a file that is replaced by renaming, or is missing for a while, is read again", async () => {
  await using directory = await temporaryDirectory();
  const path = await directory.write("keys.json", "one");
  const { file, seen, errors } = watching(path);
  expect(file.content.text).toBe("one");

  await rename(await directory.write("keys.json.new", "two"), path);
  await until(() => seen.length === 1);
  await rm(path);
  await until(() => errors.length === 1);
  await writeFile(path, "three");
  await until(() => seen.includes("three"));
  expect(errors).toHaveLength(1);
});

test("files of a Kubernetes volume change with the link `..data`", async () => {
  await using directory = await temporaryDirectory();
  for (const version of ["one", "two"]) {
    await mkdir(join(directory.path, `..${version}`));
    await directory.write(join(`..${version}`, "keys.json"), version);
  }
  await symlink("..one", join(directory.path, "..data"));
  await symlink("..data/keys.json", join(directory.path, "keys.json"));
  const { seen } = watching(join(directory.path, "keys.json"));

  await symlink("..two", join(directory.path, "..data_tmp"));
  await rename(join(directory.path, "..data_tmp"), join(directory.path, "..data"));
  await until(() => seen.length > 0);
  expect(seen).toEqual(["two"]);
});

test.each(["tls/tls.crt", "a/b/c/tls.crt"])(
  "they change within two seconds in deeper directories: %s",
  async (name) => {
    await using directory = await temporaryDirectory();
    await mountFiles(directory.path, { [name]: "0" });
    const { seen } = watching(join(directory.path, name));
    let round = 0;
    const change = () => mountFiles(directory.path, { [name]: String((round += 1)) });
    const inForce = () => seen.at(-1) === String(round);
    // After a swap the new files are watched, or only the first swap would be noticed soon.
    for (let swap = 1; swap <= 2; swap += 1) {
      expect(await isSoonInForce(change, inForce, async () => undefined)).toBe(true);
    }
  },
  60_000,
);

test("nothing is reported after close, and a missing file is an immediate error", async () => {
  await using directory = await temporaryDirectory();
  const path = await directory.write("keys.json", "one");
  const closed = watching(path);
  const open = watching(path);
  closed.file.close();
  await writeFile(path, "two");
  await until(() => open.seen.length > 0);
  expect(closed.seen).toEqual([]);
  await unlink(path);
  expect(() => watching(path)).toThrow("ENOENT");
});
