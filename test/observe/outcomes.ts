import type { Outcome } from "../../src/core/outcome.ts";

/** An ordinary forwarded request, with what a test wants different. */
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
