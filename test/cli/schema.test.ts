import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { command } from "./command.ts";

const read = (name: string): string =>
  readFileSync(new URL(`../../${name}`, import.meta.url), "utf8");

it("the schema in the repository is the one the command prints", async () => {
  // To update it: node src/main.ts schema > config.schema.json
  expect(await command(["schema"])).toEqual({
    code: 0,
    out: read("config.schema.json"),
    err: "",
  });
});

it("the shipped configuration names it for editors", () => {
  expect(read("config.yaml").split("\n")[0]).toBe(
    "# yaml-language-server: $schema=./config.schema.json",
  );
  expect(JSON.parse(read("config.schema.json"))).toMatchObject({
    $schema: "https://json-schema.org/draft/2020-12/schema",
    type: "object",
  });
});
