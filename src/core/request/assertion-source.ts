import type { Identity } from "./identity.ts";

/** Tells the backend who is calling, in a form that the backend can verify. */
export interface AssertionSource {
  /** The name of the header field for the assertion. */
  readonly header: string;
  /**
   * Returns a short-lived signed JWT about a caller. Returns the same one while most of its lifetime remains.
   *
   * @throws GateError `keys_unusable` if no key can sign.
   */
  for(identity: Identity): string;
}
