import { z } from "zod";
import { text } from "../fields.ts";
import { apiServer, remoteAccess, remoteTimes, remoteUrl } from "../remote-fields.ts";

/** Issuers in `tokens.trusted` whose tokens another server is asked about. */

export function introspection() {
  const { caFile } = remoteAccess();
  return z
    .strictObject({
      url: remoteUrl().describe("Address of the introspection endpoint"),
      clientId: text().describe("Name that Sallyport shows to it"),
      clientSecret: text().describe("Secret of that name; use ${file:…}"),
      caFile,
      ...remoteTimes({ timeout: "2s", cache: "30s" }),
    })
    .exactOptional()
    .describe("Asks about tokens that are no JWT (RFC 7662)");
}

export function tokenReview() {
  return z
    .strictObject({
      apiServer: apiServer(),
      ...remoteAccess(),
      audiences: z
        .array(text())
        .default([])
        .describe("A token must be for one of these; default: for the API server itself"),
      ...remoteTimes({ timeout: "2s", cache: "1m" }),
    })
    .exactOptional()
    .describe("Asks Kubernetes about every token whose iss no other entry has");
}
