import type { Endpoint } from "../request/endpoint.ts";
import type { GateRequest } from "../request/gate-request.ts";

/** Decides which responses scripts of other origins may read (Fetch Standard, §3.2). */
export interface Cors {
  /**
   * @param origin the `Origin` of a request; undefined if it has none.
   * @returns the fields for the response, names and values alternating.
   */
  fields(origin: string | undefined): readonly string[];
  /** Whether a script of this origin may send cookies. */
  trusts(origin: string): boolean;
  /**
   * @returns the endpoint for a preflight; undefined for any other request.
   * @throws GateError `origin_not_allowed`.
   */
  preflight(request: GateRequest): Endpoint | undefined;
}
