import type { Outcome } from "../../src/core/request/outcome.ts";
import { writeAccessLine } from "../../src/observe/log/access-log.ts";
import { LineBytes } from "../../src/observe/log/line-bytes.ts";

/** Returns the outcome of an ordinary forwarded request, with changes. */
export function outcomeWith(changes: Partial<Outcome> = {}): Outcome {
  return {
    id: 3_700_000_000_001,
    requestId: "r-1",
    client: "192.0.2.7",
    method: "GET",
    host: "api.example.com",
    path: "/orders/1",
    route: "orders",
    upstream: "app",
    target: "http://127.0.0.1:8080",
    status: 200,
    source: "upstream",
    auth: "allowed",
    reason: "ok",
    subject: "alice",
    bytesIn: 0,
    bytesOut: 130,
    durationMs: 3.1424,
    upstreamMs: 2,
    protocol: "HTTP/1.1",
    ...changes,
  };
}

/** Every optional field that an ordinary request lacks. */
export const RARE_FIELDS = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
} satisfies Partial<Outcome>;

/** Shared by all tests, as in the product: leftovers from one line would show in the next. */
const bytes = new LineBytes();

/** Returns the access line of a request as text. */
export function formatAccessLine(outcome: Outcome, now: number): string {
  writeAccessLine(bytes, outcome, now);
  return bytes.toString();
}
