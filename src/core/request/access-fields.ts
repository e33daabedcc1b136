import type { IncomingHttpHeaders } from "node:http";
import type { Identity } from "./identity.ts";

/** The source of the additional fields of an access line. */
export interface LoggedRequest {
  /** As the client sent them. */
  readonly headers: IncomingHttpHeaders;
  /** The verified caller. */
  readonly identity: Identity | undefined;
  /** The status for the log. */
  readonly status: number;
}

/**
 * Returns the additional fields of one access line, names and values alternating. Values are truncated, secrets are
 * masked. Returns undefined if no line will be written.
 */
export type AccessFields = (request: LoggedRequest) => readonly string[] | undefined;
