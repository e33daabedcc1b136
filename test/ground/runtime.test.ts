import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { expect, it } from "vitest";

const PINNED = resolve(import.meta.dirname, "../../node_modules/node/package.json");

/**
 * The machine may bring an older Node. The development dependency `node` comes first on the path of every npm script,
 * so what is tested is tested on the version that is pinned, not on whatever the machine has.
 */
it("runs on the Node that package.json pins", () => {
  const { version } = JSON.parse(readFileSync(PINNED, "utf8")) as { version: string };
  expect(process.version).toBe(`v${version}`);
});
