import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { unsupportedNode } from "../../src/lib/node-version.ts";

it.each(["24.18.1", "24.19.0", "26.5.1", "26.10.0", "27.0.0", "28.1.2", process.versions.node])(
  "runs on Node %s",
  (version) => {
    expect(unsupportedNode(version)).toBeUndefined();
  },
);

it.each(["18.20.8", "20.20.2", "22.22.0", "24.18.0", "24.9.0", "25.9.0", "26.5.0", "26.0.0"])(
  "refuses Node %s in one line that names it and the required versions",
  (version) => {
    const refusal = unsupportedNode(version) ?? "";
    expect(refusal).toContain(version);
    expect(refusal).toContain("24.18.1");
    expect(refusal).toContain("26.5.1");
    expect(refusal).not.toContain("\n");
  },
);

it("refuses versions that package.json does not support", () => {
  const file = new URL("../../package.json", import.meta.url);
  const { engines } = JSON.parse(readFileSync(file, "utf8")) as { engines: { node: string } };
  expect(engines.node).toBe("^24.18.1 || >=26.5.1");
});
