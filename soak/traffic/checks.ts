import { createHash } from "node:crypto";
import type { Answer } from "./client.ts";
import { objectIn } from "./envelope.ts";

/** The request that the backend must have received. */
export interface Expected {
  readonly method: string;
  readonly path: string;
  readonly subject: string;
  readonly body?: Buffer | undefined;
}

/** Returns a check that the answer belongs to the request: it is the backend's echo of exactly this request. */
export function echoes(expected: Expected): (answer: Answer) => string | undefined {
  const { body = Buffer.alloc(0) } = expected;
  return ({ body: answered, requestId }) => {
    const echo = objectIn(answered);
    const wanted = {
      method: expected.method,
      url: expected.path,
      subject: expected.subject,
      authorization: "",
      requestId,
      bytes: body.length,
      sha256: createHash("sha256").update(body).digest("hex"),
    };
    const wrong = Object.entries(wanted).filter(([name, value]) => echo?.[name] !== value);
    return wrong.length === 0 ? undefined : `the backend got another ${wrong[0]?.[0]}`;
  };
}

/** Returns a check of the body, byte for byte. */
export function holds(body: Buffer): (answer: Answer) => string | undefined {
  return ({ body: answered }) => {
    if (answered.equals(body)) return undefined;
    return `the body differs: ${answered.length} bytes instead of ${body.length}`;
  };
}
