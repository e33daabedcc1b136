import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { expect, it } from "vitest";
import { statusPicture } from "../../docs/pictures/status-page.ts";

it("the picture of the status page is up to date", async () => {
  const file = resolve(import.meta.dirname, "../../docs/pictures/status-page.svg");
  expect(await readFile(file, "utf8"), "run npm run docs:pictures").toBe(statusPicture());
});
