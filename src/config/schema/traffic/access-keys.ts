import { z } from "zod";
import { requirements } from "./requirement-keys.ts";
import { tokenPlaces } from "./token-places.ts";

/** The keys of a route about its callers. */
export function accessKeys() {
  return {
    auth: z
      .enum(["required", "optional", "none"])
      .default("required")
      .describe(
        "Whether a token is required. With optional, a request without one passes as nobody's, and a bad one is 401; none makes the route public",
      ),
    tokenFrom: tokenPlaces().exactOptional(),
    mode: z
      .enum(["enforce", "monitor"])
      .default("enforce")
      .describe(
        "With monitor, requests that would be refused are forwarded without identity headers and counted",
      ),
    require: requirements().exactOptional().describe("Further requirements on the caller (403)"),
  };
}
