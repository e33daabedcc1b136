import { z } from "zod";
import { isOwnAnswerHeader, isOwnRequestHeader } from "../../../upstream/headers/header-names.ts";
import { headerName, isHost } from "../fields.ts";

/** The keys of a route that change header fields for the backend and the client. */

/**
 * The characters that Node and every backend accept in a field value (RFC 9110 §5.5), without obsolete bytes above
 * ASCII.
 */
const VALUE = /^[\t\x20-\x7e]*$/;

function changes(refused: (name: string) => boolean) {
  const changeable = () =>
    headerName().refine(
      (name) => !refused(name),
      "must not be a header that frames the message, is hop-by-hop, or belongs to Sallyport",
    );
  const value = () =>
    z
      .string()
      .regex(VALUE, "must be printable ASCII")
      .describe("Value; may contain ${claim:…}, ${subject}, ${request_id} and ${client}");
  return z.strictObject({
    set: z
      .record(changeable(), value())
      .default({})
      .describe("Headers to replace, with their values"),
    add: z.record(changeable(), value()).default({}).describe("Headers to add, with their values"),
    remove: z.array(changeable()).default([]).describe("Headers to remove"),
  });
}

/** Whether a text is `host` or `host:port`. */
function isAuthority(text: string): boolean {
  const [, host = "", port = "1"] = /^([^:]+|\[[^\]]+\])(?::(\d{1,5}))?$/.exec(text) ?? [];
  return isHost(host) && Number(port) >= 1 && Number(port) <= 65_535;
}

export function headerKeys() {
  return {
    hostHeader: z
      .string()
      .refine(
        (text) => text === "preserve" || text === "target" || isAuthority(text),
        "must be preserve, target, or the name of a host",
      )
      .default("preserve")
      .describe(
        "Host header for the backend: preserve keeps the client's, target uses the target's, or a fixed name",
      ),
    requestHeaders: changes(isOwnRequestHeader)
      .exactOptional()
      .describe("Changes to the headers for the backend"),
    responseHeaders: changes(isOwnAnswerHeader)
      .exactOptional()
      .describe("Changes to the headers for the client"),
  };
}
