import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";

const PINNED = resolve(import.meta.dirname, "../../node_modules/node/package.json");

/**
 * The machine may have an older Node. The development dependency `node` comes first on the PATH of every npm script,
 * so tests run on the pinned version, not on the machine's.
 */
it("runs on the Node that package.json pins", () => {
  const { version } = JSON.parse(readFileSync(PINNED, "utf8")) as { version: string };
  expect(process.version).toBe(`v${version}`);
});
