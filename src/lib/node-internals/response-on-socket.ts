import type { ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * Returns the response that an HTTP/1.1 connection is writing, if any. Node keeps it under this name, and reads it in its
 * own default handler of `clientError`.
 */
export function responseOn(socket: Duplex): unknown {
  return "_httpMessage" in socket ? socket._httpMessage : undefined;
}

/** Returns the head of a response as Node keeps it until the response is complete; undefined if it is not written yet. */
export function headOf(response: ServerResponse): string | undefined {
  const head: unknown = "_header" in response ? response._header : undefined;
  return typeof head === "string" ? head : undefined;
}
