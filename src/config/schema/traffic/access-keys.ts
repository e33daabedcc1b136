import { z } from "zod";
import { requirements } from "./requirement-keys.ts";
import { tokenPlaces } from "./token-places.ts";

/** The keys of a route that concern its callers. */
export function accessKeys() {
  return {
    auth: z
      .enum(["required", "optional", "none"])
      .default("required")
      .describe(
        "Whether a token is required. optional lets requests without a token pass as anonymous, but refuses invalid tokens (401); none makes the route public",
      ),
    tokenFrom: tokenPlaces().exactOptional(),
    mode: z
      .enum(["enforce", "monitor"])
      .default("enforce")
      .describe(
        "monitor refuses nothing: requests that it would refuse are counted and forwarded without identity headers",
      ),
    require: requirements().exactOptional().describe("Further requirements on the caller (403)"),
  };
}
