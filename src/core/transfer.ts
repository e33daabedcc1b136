/** What forwarding has moved so far. The pipeline makes one for each request, `upstream/` fills it, the log line reads it. */
export class Transfer {
  upstream: string | undefined;
  target: string | undefined;
  /** Body bytes from the client towards the backend. */
  bytesIn = 0;
  /** Body bytes from the backend towards the client. */
  bytesOut = 0;
  /** From dispatch until the head of the backend's answer, in milliseconds. */
  answeredAfterMs: number | undefined;
  /** Why the answer broke off after it had begun; undefined when it is whole. */
  brokeOff: string | undefined;
}
