/** The kinds of faults, with their meaning. */
export const FAULT_KINDS = {
  smuggled:
    "a request reached the backend that the client did not send, or did not send completely",
  unauthorised: "a request reached a protected path without a valid token",
  forged: "the backend got an identity or an origin that the client chose",
  path: "the path or the query that arrived is not the one that was sent",
  body: "the body or the trailers that arrived are not the ones that were sent",
  field: "a header field was lost, changed, or passed on although it must not be",
  malformed: "the backend got bytes that are not an unambiguous request",
  mixed: "a client got the answer to another request",
  answer: "an answer is not valid HTTP, has no envelope, or reports a failure of our own",
  silence: "a connection got no answer, or did not end",
  needless: "a well-formed, authorized request was refused",
  stall: "the event loop did not turn",
  cost: "a request cost far more time than its size justifies",
  memory: "the process uses far more memory than its limits justify",
  trouble: "the process ended, logged an error, or does not report that it is alive",
  lost: "an innocent neighbour did not get its answer in time",
  left: "something of clients that left is still there",
  outlived: "an upload went on although its token had been revoked",
  configuration:
    "the check of a configuration crashed, hung, or reported a problem without its position",
} as const;

/** Kinds that are measured: if they do not repeat, the machine was the cause. */
export const MEASURED_KINDS: ReadonlySet<FaultKind> = new Set<FaultKind>(["stall", "cost"]);

export type FaultKind = keyof typeof FAULT_KINDS;

export interface Fault {
  readonly kind: FaultKind;
  readonly detail: string;
}

export function fault(kind: FaultKind, detail: string): Fault {
  return { kind, detail };
}
