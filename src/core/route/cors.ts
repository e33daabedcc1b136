import type { Endpoint } from "../request/endpoint.ts";
import type { GateRequest } from "../request/gate-request.ts";

/** Fields for a response, names and values alternating. */
export interface CorsFields {
  /** For the response of a backend. */
  readonly backend: readonly string[];
  /** For a response of Sallyport's own: scripts may also read what says why, and when to ask again. */
  readonly own: readonly string[];
}

/** Decides which responses scripts of other origins may read (Fetch Standard, §3.2). */
export interface Cors {
  /** @param origin the `Origin` of a request; undefined if it has none. */
  fields(origin: string | undefined): CorsFields;
  /** Whether a script of this origin may send cookies. */
  trusts(origin: string): boolean;
  /**
   * @returns the endpoint for a preflight; undefined for any other request.
   * @throws GateError `origin_not_allowed`.
   */
  preflight(request: GateRequest): Endpoint | undefined;
}
