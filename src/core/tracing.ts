import type { Outcome } from "./outcome.ts";
import type { Permit } from "./permit.ts";

/**
 * Follows requests from service to service (W3C Trace Context). There is one only where tracing is on; without it a client's
 * `traceparent` goes on as it came. Requests are known by their `id`. No call blocks or throws.
 */
export interface Tracing {
  /** The head of a request has arrived. @param rawHeaders name and value alternating. */
  began(id: number, rawHeaders: readonly string[]): void;
  /** The request goes to a backend, for the first or for another time: the headers that say so, name and value alternating. */
  dispatched(permit: Permit): readonly string[];
  /** Ends what `began` has begun; undefined when that was nothing. @returns the id of the trace, 32 hexadecimal digits. */
  ended(outcome: Outcome): string | undefined;
  /** Sends what is finished and not yet sent, for some seconds at most. Never rejects. */
  close(): Promise<void>;
}

/** The names of the headers that `dispatched` gives, in lower case. */
export const TRACE_HEADERS: readonly string[] = ["traceparent", "tracestate"];
