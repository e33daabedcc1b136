import type { GateRequest } from "../request/gate-request.ts";
import type { Identity } from "../request/identity.ts";

/** What the values of modified headers can refer to. */
export interface HeaderValues {
  readonly request: Pick<GateRequest, "requestId" | "client">;
  readonly identity: Identity | undefined;
}

/** Sets, adds and removes header fields. Prepared when the configuration is read. */
export interface HeaderModifier {
  /** @returns the modified fields. @param fields names and values, alternating. */
  modify(fields: readonly string[], values: HeaderValues): string[];
  /** The fields whose names it neither sets nor removes. */
  untouched(fields: readonly string[]): string[];
  /**
   * @returns what `modify` would set or add, for an answer of Sallyport itself, whose own fields stay: those of a name that
   *   `present` has are left out. @param present names and values, alternating.
   */
  additions(present: readonly string[], values: HeaderValues): string[];
  /** Whether the value for this name comes from the configuration alone, and may be a secret. */
  isFixed(name: string): boolean;
}
