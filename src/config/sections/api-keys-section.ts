import { z } from "zod";
import { filePath } from "../fields.ts";
import { listAt, mappingAt, type PathProblem, type Section, type Written } from "../written.ts";

/** What holds of the section `apiKeys`, besides its schema. */
export const apiKeys: Section = { rules: [placeProblems] };

/** The section `apiKeys`: where the keys of programs are, which have no other token. */
export function apiKeysSection() {
  return z
    .array(
      z.strictObject({
        kind: z.literal("file").describe("Kind of store"),
        path: filePath({ secret: true }).describe(
          "File with the hashes of keys: see sallyport api-key --help; changes are in force at once",
        ),
      }),
    )
    .default([])
    .describe(
      "Stores of API keys, which count where tokenFrom of a route has apiKey. Default: none",
    );
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
