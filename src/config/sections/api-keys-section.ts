import { z } from "zod";
import { KEY_QUERY } from "../../tokens/api-keys/postgres-keys.ts";
import { filePath } from "../fields.ts";
import {
  listAt,
  type Mapping,
  mappingAt,
  ofEachRoute,
  type PathProblem,
  type Section,
  type Written,
} from "../written.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { database, store, timeout } from "./users-section.ts";

/** What holds of the section `apiKeys`, besides its schema. */
export const apiKeys: Section = { rules: [ofEachRoute(placeProblems)] };

/** The section `apiKeys`: where the keys of programs are, which have no other token. */
export function apiKeysSection() {
  const file = store("file", "Keys in a YAML file", {
    path: filePath({ secret: true }).describe("The file of API keys"),
  });
  return z
    .array(z.discriminatedUnion("kind", [file, postgresStore()]))
    .default([])
    .describe("Stores of API keys, for routes with apiKey in tokenFrom");
}

function postgresStore() {
  const { url, ...secured } = database();
  return store("postgres", "Keys in PostgreSQL", {
    url,
    query: z
      .string()
      .min(1, "must not be empty")
      .default(KEY_QUERY)
      .describe("Query for all keys, every half second; it returns at least name and hash"),
    ...secured,
    timeout: timeout().describe("Time for the response; while it is late, the keys stay"),
  });
}

/** A place for API keys needs a store of them. */
function placeProblems(route: Mapping, at: YamlPath, { whole }: Written): PathProblem[] {
  if (listAt(whole, "apiKeys").length > 0) return [];
  const message = "needs apiKeys: no API key would be accepted";
  return listAt(route, "tokenFrom").flatMap((place, index) =>
    mappingAt(place)["apiKey"] === undefined
      ? []
      : [{ path: [...at, "tokenFrom", index, "apiKey"], message }],
  );
}
