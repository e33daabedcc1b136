import type { GateRequest } from "../request/gate-request.ts";
import type { Identity } from "../request/identity.ts";

/** Asks another server whether a caller may make a request. */
export interface Authorizer {
  /**
   * Returns whether the caller may make the request: synchronously if the answer is cached, else a promise.
   *
   * @throws or rejects with GateError `authorization_unavailable` if the server cannot decide.
   */
  allows(request: GateRequest, identity: Identity): boolean | Promise<boolean>;
}
