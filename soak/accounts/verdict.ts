import type { AccessLine } from "./access-line.ts";
import type { Asked } from "./asked.ts";
import type { Excuse, FaultWindows } from "./fault-windows.ts";

export type Verdict =
  | { readonly word: "right" }
  /** The answer was not the expected one, but its target had a fault at that time. */
  | { readonly word: "excused"; readonly fault: string }
  /** The answer was wrong or missing without an excuse. */
  | { readonly word: "lost"; readonly why: string }
  /** The log differs from what the client got. */
  | { readonly word: "mismatch"; readonly why: string };

const RIGHT: Verdict = { word: "right" };

/** Judges one request by what its client got, its log line, and the faults of its target. */
export function judgeRequest(asked: Asked, line: AccessLine, windows: FaultWindows): Verdict {
  const { got, right } = asked;
  if (got.what === "left") return RIGHT;
  const seen = got.what === "broke" ? `broke off (${got.why})` : `got ${got.status}`;
  const why = `${asked.kind} ${asked.id} ${seen}; logged ${line.status} ${line.reason ?? ""} ${line.target ?? ""}`;
  if (got.what === "answer") {
    if (got.status !== line.status) return { word: "mismatch", why };
    if (got.envelopeId !== undefined && got.envelopeId !== line.id) {
      return { word: "mismatch", why: `${why}; the envelope has another id` };
    }
    if (got.fault !== undefined) return { word: "lost", why: `${why}; ${got.fault}` };
    if (right.includes(got.status)) return RIGHT;
  }
  const excuse = got.what === "broke" ? "broke" : excuseOf(got.status);
  const fault =
    excuse === undefined
      ? undefined
      : windows.excuse(line.target, excuse, asked.startedMs, asked.endedMs);
  return fault === undefined ? { word: "lost", why } : { word: "excused", fault };
}

function excuseOf(status: number): Excuse | undefined {
  return status === 401 || status === 502 || status === 503 || status === 504 ? status : undefined;
}
