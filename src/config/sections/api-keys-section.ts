import { z } from "zod";
import { KEY_QUERY } from "../../tokens/api-keys/postgres-keys.ts";
import type { KeyStoreName } from "../../tokens/api-keys/key-store-kinds.ts";
import { duration, filePath } from "../fields.ts";
import { listAt, mappingAt, type PathProblem, type Section, type Written } from "../written.ts";
import { database } from "./users-section.ts";

/** What holds of the section `apiKeys`, besides its schema. */
export const apiKeys: Section = { rules: [placeProblems] };

/** The section `apiKeys`: where the keys of programs are, which have no other token. */
export function apiKeysSection() {
  const file = store("file", {
    path: filePath({ secret: true }).describe(
      "File with the hashes of keys: see sallyport api-key --help; changes are in force at once",
    ),
  });
  return z
    .array(z.discriminatedUnion("kind", [file, postgresStore()]))
    .default([])
    .describe(
      "Stores of API keys, which count where tokenFrom of a route has apiKey. Default: none",
    );
}

function store<Kind extends KeyStoreName, Shape extends z.ZodRawShape>(kind: Kind, keys: Shape) {
  return z.strictObject({ kind: z.literal(kind).describe("Kind of store"), ...keys });
}

function postgresStore() {
  const { url, ...secured } = database();
  return store("postgres", {
    url,
    query: z
      .string()
      .min(1, "must not be empty")
      .default(KEY_QUERY)
      .describe(
        "Query for all keys, run every half second; it returns name, hash and, optionally, subject, groups, scopes, expires, disabled, created",
      ),
    ...secured,
    timeout: duration({ min: 10, max: 30_000 })
      .prefault("3s")
      .describe("Time for the answer; while the store is late, the keys stay as they are"),
  });
}

/** A place for API keys needs a store of them. */
function placeProblems({ whole, routes }: Written): PathProblem[] {
  if (listAt(whole, "apiKeys").length > 0) return [];
  return routes.flatMap((route, index) =>
    listAt(route, "tokenFrom").flatMap((place, at) =>
      mappingAt(place)["apiKey"] === undefined
        ? []
        : [
            {
              path: ["routes", index, "tokenFrom", at, "apiKey"],
              message: "needs apiKeys: no API key would be accepted",
            },
          ],
    ),
  );
}
