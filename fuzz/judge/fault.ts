/** What can be wrong, by what it means. */
export const FAULT_KINDS = {
  smuggled: "a request reached the backend that the client did not send, or not whole",
  unauthorised: "a request reached a protected path without a valid token",
  forged: "the backend was told an identity or an origin that the client chose",
  path: "the path or the query that arrived is not the one that was sent",
  body: "the body or the trailers that arrived are not the ones that were sent",
  field: "a header field was lost, changed, or went further than it may",
  malformed: "the backend got bytes that are no clear request",
  mixed: "a client got an answer that is not the one to its request",
  answer: "an answer is no valid HTTP, no envelope, or a failure of our own",
  silence: "a connection got no answer, or did not end",
  needless: "a well-formed, authorised request was refused",
  stall: "the event loop did not turn",
  cost: "a request cost far more time than its size accounts for",
  memory: "the process holds far more memory than its limits account for",
  trouble: "the process ended, complained, or does not say that it is alive",
  configuration: "the check of a configuration crashed, hung, or told a problem without its place",
} as const;

/** Kinds that are measured: what is seen once and not again was the machine. */
export const MEASURED_KINDS: ReadonlySet<FaultKind> = new Set<FaultKind>(["stall", "cost"]);

export type FaultKind = keyof typeof FAULT_KINDS;

export interface Fault {
  readonly kind: FaultKind;
  readonly detail: string;
}

export function fault(kind: FaultKind, detail: string): Fault {
  return { kind, detail };
}
