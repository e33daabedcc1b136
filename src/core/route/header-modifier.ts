import type { GateRequest } from "../request/gate-request.ts";
import type { Identity } from "../request/identity.ts";

/** The data that the values of modified headers can refer to. */
export interface HeaderValues {
  readonly request: Pick<GateRequest, "requestId" | "client">;
  readonly identity: Identity | undefined;
}

/** Sets, adds and removes header fields. Prepared when the configuration is read. */
export interface HeaderModifier {
  /** @returns the modified fields. @param fields names and values, alternating. */
  modify(fields: readonly string[], values: HeaderValues): string[];
  /** @returns the fields whose names it neither sets nor removes. */
  untouched(fields: readonly string[]): string[];
  /**
   * Returns the fields that `modify` would set or add, for a response of Sallyport itself. Leaves out names that are in
   * `present`, so that the response keeps its own fields.
   *
   * @param present names and values, alternating.
   */
  additions(present: readonly string[], values: HeaderValues): string[];
  /** Whether the value for this name comes from the configuration alone, and may be a secret. */
  isFixed(name: string): boolean;
}
