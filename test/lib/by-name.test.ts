import { expect, it } from "vitest";
import { rememberedByName } from "../../src/lib/text/by-name.ts";

it("usual names are remembered even after a stranger has sent thousands of others", () => {
  let made = 0;
  const lengthOf = rememberedByName((name) => {
    made += 1;
    return name.length;
  });
  for (let at = 0; at < 5_000; at += 1) lengthOf(`x-${at}`);
  made = 0;
  for (let times = 0; times < 100; times += 1) expect(lengthOf("Accept")).toBe(6);
  expect(made).toBe(1);
  const long = "x".repeat(100);
  lengthOf(long);
  lengthOf(long);
  expect(made).toBe(3);
});
