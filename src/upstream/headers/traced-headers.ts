import { TRACE_HEADERS, type Tracing } from "../../core/tracing.ts";
import type { OutgoingHeaders } from "./outgoing-headers.ts";

/** Replaces the trace headers if tracing is on. */
export function tracedHeaders(
  outgoing: OutgoingHeaders,
  tracing: Pick<Tracing, "dispatched"> | undefined,
): OutgoingHeaders {
  if (tracing === undefined) return outgoing;
  return {
    ...outgoing,
    headers(permit) {
      const before = outgoing.headers(permit);
      const fields: string[] = [];
      for (let i = 0; i + 1 < before.length; i += 2) {
        const name = before[i] ?? "";
        if (!TRACE_HEADERS.includes(name.toLowerCase())) fields.push(name, before[i + 1] ?? "");
      }
      return [...fields, ...tracing.dispatched(permit)];
    },
  };
}
