import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { GateError } from "../../src/core/request/errors.ts";
import type { VersionSource } from "../../src/core/version-source.ts";
import { fileVersion, fixedVersion } from "../../src/server/endpoints/version-endpoint.ts";
import { namedPipe } from "../support/named-pipe.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

let directory: TemporaryDirectory;
beforeAll(async () => {
  directory = await temporaryDirectory();
});
afterAll(() => directory.close());

async function reasonOf(source: VersionSource): Promise<string> {
  const error: unknown = await source.current().then(String, (thrown: unknown) => thrown);
  return error instanceof GateError
    ? `${error.code} ${error.reason}`
    : `no refusal: ${String(error)}`;
}

test("a fixed version is returned unchanged", async () => {
  expect(await fixedVersion("2.3.1").current()).toBe("2.3.1");
});

describe("a version in a file", () => {
  test.each(["2.3.1", "2.3.1\n", "  2.3.1\r\n", "0.0.0", "10.20.30"])(
    "is read: %j",
    async (text) => {
      expect(await fileVersion(await directory.write("VERSION", text)).current()).toBe(text.trim());
    },
  );

  test("is read again each time", async () => {
    const source = fileVersion(await directory.write("VERSION", "1.0.0"));
    expect(await source.current()).toBe("1.0.0");
    await directory.write("VERSION", "1.0.1");
    expect(await source.current()).toBe("1.0.1");
  });

  test.each([
    ...["", "2.3", "v2.3.1", "2.3.1-rc.1", "02.3.1", "2.3.1 4", "2.3.1\n2.3.2", "\ufeff2", "1.2.x"],
    ...[`${"1".repeat(300)}.0.0`, "\u0000"],
  ])("that is invalid is refused: %j", async (text) => {
    const source = fileVersion(await directory.write("VERSION", text));
    expect(await reasonOf(source)).toBe("version_unavailable version_malformed");
  });

  test("that is a named pipe does not block", async () => {
    const source = fileVersion(await namedPipe(join(directory.path, "pipe")));
    // Enough to occupy all threads that read files.
    for (const reason of await Promise.all([1, 2, 3, 4, 5].map(() => reasonOf(source)))) {
      expect(reason).toBe("version_unavailable version_unreadable");
    }
  });

  test.each(["missing", "."])("cannot be read from %s", async (name) => {
    const source = fileVersion(join(directory.path, name));
    expect(await reasonOf(source)).toBe("version_unavailable version_unreadable");
  });
});
