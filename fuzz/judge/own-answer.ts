import type { Answer } from "../wire/answers.ts";
import { connectionOptions, valuesOf } from "../wire/head.ts";
import { type Fault, fault } from "./fault.ts";
import { show } from "./forwarded.ts";

/** What a healthy proxy in front of a healthy backend may answer by itself. */
const STATUSES: ReadonlySet<number> = new Set([
  ...[200, 400, 401, 404, 405, 408, 413, 415, 417, 429, 431, 503],
]);

const FIELDS = {
  "content-type": /^application\/json$/,
  "cache-control": /^no-store$/,
  "x-content-type-options": /^nosniff$/,
  "x-request-id": /^[A-Za-z0-9._-]{1,128}$/,
} as const;

/** Statuses after which the connection cannot be used further. */
const CLOSING: ReadonlySet<number> = new Set([400, 408, 413, 417, 431]);

/**
 * Holds an answer of the proxy's own to the contract: the envelope and its headers.
 *
 * @param ends whether some of them must say that the connection ends, as in HTTP/1.1.
 */
export function judgeOwnAnswer(
  answer: Answer,
  method: string | undefined,
  path: string,
  ends: boolean,
): Fault[] {
  const { status, fields, body } = answer;
  const faults: Fault[] = [];
  const wrong = (what: string): void => void faults.push(fault("answer", `${status}: ${what}`));
  const isLogin = path === "/api/authenticate";
  if (!STATUSES.has(status) || (status === 503 && !isLogin)) wrong(show(body));
  for (const [name, pattern] of Object.entries(FIELDS)) {
    const values = valuesOf(fields, name);
    if (values.length !== 1 || !pattern.test(values[0] ?? "")) wrong(`${name}: ${values.join()}`);
  }
  // A login that cannot be read leaves the connection as it was.
  const closes = connectionOptions(fields).includes("close");
  if (ends && CLOSING.has(status) && !closes && !isLogin) wrong("the connection goes on");
  if (method !== "HEAD" && !isEnvelope(body, status)) wrong(`no envelope: ${show(body)}`);
  return faults;
}

function isEnvelope(body: string, status: number): boolean {
  try {
    const value: unknown = JSON.parse(body);
    return (
      typeof value === "object" &&
      value !== null &&
      "id" in value &&
      Number.isSafeInteger(value.id) &&
      "message" in value &&
      typeof value.message === "string" &&
      "success" in value &&
      value.success === (status === 200)
    );
  } catch {
    return false;
  }
}
