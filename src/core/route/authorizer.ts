import type { GateRequest } from "../request/gate-request.ts";
import type { Identity } from "../request/identity.ts";

/** Somebody else who is asked whether a caller may make a request. */
export interface Authorizer {
  /**
   * Returns at once what is remembered.
   *
   * @throws or rejects with GateError `authorization_unavailable` if it cannot be told.
   */
  allows(request: GateRequest, identity: Identity): boolean | Promise<boolean>;
}
