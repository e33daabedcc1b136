import { z } from "zod";
import { remoteUrl, text } from "../fields.ts";

/** The section `metadata`: what programs read to get a token for this resource (RFC 9728). */
export function metadataSection() {
  return z
    .strictObject({
      resource: remoteUrl()
        // It stands between quotes in challenges.
        .refine((url) => !/[?"\\]/.test(url), "must have no query, quotes or backslashes")
        .exactOptional()
        .describe(
          "Identifier of this resource, which tokens have as audience: its URL as clients write it; default: the origin that was asked for",
        ),
      name: text().exactOptional().describe("Name for people"),
      documentation: z.url().exactOptional().describe("URL of a page for developers"),
    })
    .describe(
      "Serves /.well-known/oauth-protected-resource, and names it in every challenge (RFC 9728). Default: none",
    );
}
