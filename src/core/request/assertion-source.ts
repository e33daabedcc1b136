import type { Identity } from "./identity.ts";

/** Tells the backend who is calling in a form that it can verify. */
export interface AssertionSource {
  /** The header that carries it. */
  readonly header: string;
  /**
   * A short signed JWT about a caller; the same one as long as most of its life is left.
   *
   * @throws GateError `keys_unusable` if no key can sign.
   */
  for(identity: Identity): string;
}
