import type { BackendRequest } from "../http/connection.ts";
import { lowerCase } from "../../lib/text/by-name.ts";
import { isSendableTarget, isSendableValue } from "../http1/request-writer.ts";
import { BackendFault } from "../http/faults.ts";

/**
 * Returns the header section of a request: names and values, alternating. Node sends the pseudo-header fields of
 * RFC 9113 §8.3.1 first.
 *
 * @throws BackendFault
 */
export function requestFields(request: BackendRequest, scheme: string): string[] {
  const { method, path, headers } = request;
  if (!isSendableTarget(path)) throw new BackendFault("unsendable");
  const fields = [":method", method, ":scheme", scheme, ":path", path];
  for (let i = 0; i + 1 < headers.length; i += 2) {
    const name = headers[i] ?? "";
    const value = headers[i + 1] ?? "";
    if (!isSendableValue(value)) throw new BackendFault("unsendable");
    fields.push(name === "Host" ? ":authority" : lowerCase(name), value);
  }
  // The only value that HTTP/2 allows (RFC 9113 §8.2.2). gRPC servers look for it.
  if (request.acceptsTrailers === true) fields.push("te", "trailers");
  return fields;
}
