import type { IncomingHttpHeaders } from "node:http";

/** Parses the JSON object in a body; undefined if it is not one. */
export function objectIn(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the `id` of an answer that Sallyport generated; undefined if the answer violates the contract. */
export function envelopeId(answer: {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  readonly requestId: string;
}): number | undefined {
  const { id, message, success } = objectIn(answer.body) ?? {};
  const sound =
    typeof message === "string" &&
    success === answer.status < 400 &&
    answer.headers["content-type"] === "application/json" &&
    answer.headers["x-request-id"] === answer.requestId;
  return sound && typeof id === "number" && Number.isSafeInteger(id) ? id : undefined;
}
