import type { IncomingHttpHeaders } from "node:http";

/** The object in a body; undefined when it is none. */
export function objectIn(body: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(body.toString());
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

/** The `id` of one of Sallyport's own answers; undefined when it is not as the contract has it. */
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
