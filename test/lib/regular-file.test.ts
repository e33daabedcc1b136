import { symlink } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  readRegularFile,
  readRegularFileSync,
  readFailure,
} from "../../src/lib/files/regular-file.ts";
import { namedPipe } from "../support/named-pipe.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await temporaryDirectory();
  await namedPipe(join(directory.path, "pipe"));
  await symlink("pipe", join(directory.path, "link-to-pipe"));
  await directory.write("ten-bytes", "0123456789");
  await symlink("ten-bytes", join(directory.path, "link"));
});
afterAll(() => directory.close());

const WAYS = {
  readRegularFile,
  readRegularFileSync: async (path: string, largest?: number) => readRegularFileSync(path, largest),
};

describe.each(Object.entries(WAYS))("%s", (_name, read) => {
  it.each(["ten-bytes", "link"])("reads %s", async (name) => {
    expect((await read(join(directory.path, name), 10)).text).toBe("0123456789");
  });

  it.each([
    ["pipe", "not a regular file"],
    ["link-to-pipe", "not a regular file"],
    [".", "not a regular file but a directory"],
    ["/dev/zero", "not a regular file"],
    ["missing", "ENOENT"],
    ["ten-bytes", "larger than 9B: is it the right file?"],
    // Its size is 0, as that of a file which somebody has begun to write.
    ["/proc/self/status", "larger than 9B: is it the right file?"],
  ])("refuses %s at once: %s", async (name, reason) => {
    const path = name.startsWith("/") ? name : join(directory.path, name);
    expect(await read(path, 9).then(String, readFailure)).toBe(reason);
  });

  it("reads by default as much as a Secret can contain, and not a byte more", async () => {
    const most = await directory.write("most", "x".repeat(1024 ** 2));
    expect((await read(most)).bytes.length).toBe(1024 ** 2);
    const more = await directory.write("more", "x".repeat(1024 ** 2 + 1));
    expect(await read(more).then(String, readFailure)).toBe(
      "larger than 1MiB: is it the right file?",
    );
  });
});
