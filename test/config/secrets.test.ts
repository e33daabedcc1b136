/** Keys that hold a secret are masked wherever the configuration is shown: by their name, so that none is forgotten. */
import { expect, test } from "vitest";
import { readFileSync } from "node:fs";
import { join } from "node:path";

type Schema = { readonly [key: string]: unknown };

/** Returns the keys below a part of the schema that hold text, each with whether it is never shown. */
function* textKeys(part: unknown, path: string): Generator<[path: string, hidden: boolean]> {
  if (typeof part !== "object" || part === null) return;
  for (const [name, value] of Object.entries(part as Schema)) {
    if (name === "properties" && typeof value === "object" && value !== null) {
      for (const [key, field] of Object.entries(value as Record<string, Schema>)) {
        if (field["type"] === "string") yield [`${path}.${key}`, field["writeOnly"] === true];
        yield* textKeys(field, `${path}.${key}`);
      }
    } else yield* textKeys(value, path);
  }
}

test("every key that is named like a secret is masked in /-/config, /-/status and sallyport config", () => {
  const file = join(import.meta.dirname, "../../config.schema.json");
  const keys = [...textKeys(JSON.parse(readFileSync(file, "utf8")), "")];
  // The name of a field, not a password.
  const names = [".users.fields.password"];
  const secrets = keys.filter(
    ([path]) => /\.[^.]*(?:secret|password)$/i.test(path) && !names.includes(path),
  );
  expect(secrets.length).toBeGreaterThan(3);
  expect(secrets.filter(([, hidden]) => !hidden).map(([path]) => path)).toEqual([]);
});
