import type { Outcome } from "./request/outcome.ts";
import type { Permit } from "./request/permit.ts";

/**
 * Distributed tracing of requests (W3C Trace Context), present only if tracing is on. Without it, a client's
 * `traceparent` is forwarded unchanged. Requests are identified by their `id`. No method blocks or throws.
 */
export interface Tracing {
  /**
   * The head of a request has arrived.
   *
   * @param rawHeaders names and values, alternating.
   */
  began(id: number, rawHeaders: readonly string[]): void;
  /**
   * The request is sent to a backend, for the first time or again. Returns the headers to send, names and values
   * alternating.
   */
  dispatched(permit: Permit): readonly string[];
  /**
   * Ends the trace of a request.
   *
   * @returns the trace id, 32 hexadecimal digits; undefined if the request has no trace.
   */
  ended(outcome: Outcome): string | undefined;
  /** Flushes finished spans, for some seconds at most. Never rejects. */
  close(): Promise<void>;
}

/** The names of the headers from `dispatched`, in lower case. */
export const TRACE_HEADERS: readonly string[] = ["traceparent", "tracestate"];
