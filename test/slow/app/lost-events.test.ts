/** File systems that report no events: a file behind a link into another directory, which nobody watches, is like one on them. */
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { watchFile } from "../../../src/lib/files/watched-file.ts";
import { temporaryDirectory } from "../../support/temporary-directory.ts";
import { until } from "../../support/until.ts";

it("a change that no event tells is seen within seconds", async () => {
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
    // Before what is checked in any case.
    expect(performance.now() - began).toBeLessThan(20_000);
  }
}, 60_000);
