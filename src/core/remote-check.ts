/** Checks by other servers: who is calling, and whether the caller is allowed. */

/** The kinds of checks. */
export const REMOTE_CHECK_KINDS = [
  "introspection",
  "tokenReview",
  "subjectAccessReview",
  "http",
] as const;
type RemoteCheckKind = (typeof REMOTE_CHECK_KINDS)[number];

/** The `result` of `remote_checks_total`; `cached` if the answer was cached. */
export const REMOTE_CHECK_RESULTS = ["allowed", "denied", "unavailable", "cached"] as const;
export type RemoteCheckResult = (typeof REMOTE_CHECK_RESULTS)[number];

/** A check as the configuration names it. */
export interface RemoteCheckName {
  readonly kind: RemoteCheckKind;
  readonly name: string;
}

/** Receives the results of one check. */
export interface RemoteCheckObserver {
  /** The answer was cached. */
  cached(): void;
  /** The server has answered. */
  answered(allowed: boolean, seconds: number): void;
  /** The server could not be asked, or gave no usable answer. The reason quotes neither the question nor the answer. */
  failed(reason: string, seconds: number): void;
}
