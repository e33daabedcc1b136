import type { IncomingHttpHeaders } from "node:http";
import type { Identity } from "./identity.ts";

/** What the additional fields of an access line are taken from. */
export interface LoggedRequest {
  /** As the client sent them. */
  readonly headers: IncomingHttpHeaders;
  /** The verified caller. */
  readonly identity: Identity | undefined;
  /** The status for the log. */
  readonly status: number;
}

/**
 * Returns the additional fields of one access line, names and values alternating: bounded, secrets masked. Undefined if no
 * line will be written.
 */
export type AccessFields = (request: LoggedRequest) => readonly string[] | undefined;
